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

#endif
