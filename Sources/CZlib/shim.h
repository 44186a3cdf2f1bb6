// zlib, with one call that compresses a whole text: its initializer is a macro, which Swift cannot call.
#ifndef FANFARE_CZLIB_SHIM_H
#define FANFARE_CZLIB_SHIM_H

#include <string.h>
#include <zlib.h>

// The most bytes that a text of this length takes in the format of gzip.
static inline unsigned long fanfare_gzip_bound(unsigned long length) { return compressBound(length) + 32; }

// Writes the text in the format of gzip (RFC 1952), and returns its length there; 0 if zlib fails.
static inline unsigned long fanfare_gzip(
    const unsigned char *text, unsigned int length, unsigned char *output, unsigned int room) {
    z_stream stream;
    memset(&stream, 0, sizeof stream);
    if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) return 0;
    stream.next_in = (unsigned char *)text;
    stream.avail_in = length;
    stream.next_out = output;
    stream.avail_out = room;
    int status = deflate(&stream, Z_FINISH);
    unsigned long written = status == Z_STREAM_END ? stream.total_out : 0;
    deflateEnd(&stream);
    return written;
}

// Unpacks a whole text of gzip into the output, and returns how many bytes it wrote there. `is_whole` is 1 if the text
// ended, and 0 if it is broken or the room was too small.
static inline unsigned long fanfare_gunzip(
    const unsigned char *text, unsigned int length, unsigned char *output, unsigned int room, int *is_whole) {
    z_stream stream;
    memset(&stream, 0, sizeof stream);
    *is_whole = 0;
    if (inflateInit2(&stream, 15 + 16) != Z_OK) return 0;
    stream.next_in = (unsigned char *)text;
    stream.avail_in = length;
    stream.next_out = output;
    stream.avail_out = room;
    int status = inflate(&stream, Z_FINISH);
    *is_whole = status == Z_STREAM_END && stream.avail_in == 0;
    unsigned long written = stream.total_out;
    inflateEnd(&stream);
    return written;
}

#endif
