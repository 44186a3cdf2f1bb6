import Foundation

/// One request and its answer, on the connection's thread.
struct Exchange {
    let stream: ByteStream

    func serve(_ answer: (LocalServer.Request) -> LocalServer.Reply?) {
        guard let request = read(), let reply = answer(request) else { return }
        if reply.isWithheld {
            while stream.read() != nil {}
            return
        }
        var headers = ["connection": "close"]
        if reply.saysLength { headers["content-length"] = "\(reply.body.count)" }
        headers.merge(reply.headers) { $1 }
        let head = headers.map { "\($0): \($1)\r\n" }.joined()
        stream.write(Array("HTTP/1.1 \(reply.status) Answer\r\n\(head)\r\n".utf8) + reply.body)
    }

    private func read() -> LocalServer.Request? {
        var bytes: [UInt8] = []
        while true {
            if let end = Data(bytes).range(of: Data("\r\n\r\n".utf8)) {
                guard var request = Self.head(bytes[..<end.lowerBound]) else { return nil }
                let length = Int(request.headers["content-length"] ?? "0") ?? 0
                if bytes.count >= end.upperBound + length {
                    request.body = Array(bytes[end.upperBound..<(end.upperBound + length)])
                    return request
                }
            }
            guard let more = stream.read() else { return nil }
            bytes += more
        }
    }

    private static func head(_ bytes: ArraySlice<UInt8>) -> LocalServer.Request? {
        let lines = String(decoding: bytes, as: UTF8.self).components(separatedBy: "\r\n")
        let words = lines[0].split(separator: " ").map(String.init)
        guard words.count == 3 else { return nil }
        var headers: [String: String] = [:]
        for line in lines.dropFirst() {
            let parts = line.split(separator: ":", maxSplits: 1)
            headers[parts[0].lowercased()] = parts.count > 1 ? String(parts[1].drop { $0 == " " }) : ""
        }
        return LocalServer.Request(method: words[0], path: words[1], headers: headers, body: [])
    }
}
