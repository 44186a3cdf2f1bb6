import Foundation
import Synchronization

/// A proxy to a cluster's Unix socket. It forwards every byte, and cuts the connection as a test requests.
package final class CuttingProxy: Sendable {
    /// A cut that happens once, at the first client message that contains the text.
    package enum Cut: Sendable {
        /// The server does not receive the message.
        case before(String)
        /// The server processes the message, and its response is lost.
        case beforeAnswer(to: String)
        /// Like `beforeAnswer`, but the connection stays open and silent.
        case silence(after: String)

        fileprivate var text: String {
            switch self {
            case .before(let text), .beforeAnswer(let text), .silence(let text): text
            }
        }
    }

    private struct Link {
        let client: Int32
        let server: Int32
        var cutsAtAnswer = false
        var isSilent = false
        var ended = 0
    }

    private struct State {
        var cut: Cut?
        /// The text that must arrive before the cut is armed.
        var awaited: String?
        var cuts = 0
        var links: [Int: Link] = [:]
    }

    private let directory: TemporaryDirectory
    private let listener: Int32
    private let target: String
    /// The server's text to replace, and its replacement of the same length.
    private let falsehood: (said: Data, heard: Data)?
    private let state = Mutex(State())

    /// - Parameter falsehood: a text that the server sends in one piece, and its replacement of the same length.
    package init(to cluster: PostgresCluster, falsehood: (said: String, heard: String)? = nil) throws {
        self.falsehood = falsehood.map { (Data($0.said.utf8), Data($0.heard.utf8)) }
        directory = try TemporaryDirectory()
        target = "\(cluster.folder)/.s.PGSQL.5432"
        listener = try PostgresSocket.listen(directory.file(".s.PGSQL.5432"))
        accept()
    }

    deinit { shutdown(listener, Int32(SHUT_RDWR)) }

    package func url(_ database: String) -> String { "postgres://postgres@/\(database)?host=\(directory.path)" }

    /// Requests a cut.
    ///
    /// - Parameter text: the text that must arrive before the cut is armed. `nil` arms it immediately.
    package func cut(_ cut: Cut, behind text: String? = nil) {
        state.withLock { ($0.cut, $0.awaited) = (cut, text) }
    }

    /// The number of cuts so far.
    package var cuts: Int { state.withLock { $0.cuts } }

    /// Cuts all connections now.
    package func cutAll() {
        for link in state.withLock({ Array($0.links.values) }) { Self.shut(link) }
    }

    private func accept() {
        Thread { [listener, target, weak self] in
            defer { close(listener) }
            var number = 0
            while true {
                let client = Glibc.accept(listener, nil, nil)
                guard client >= 0 else { return }
                _ = fcntl(client, F_SETFD, FD_CLOEXEC)
                guard let server = PostgresSocket.connect(target) else {
                    close(client)
                    continue
                }
                guard let self else {
                    close(client)
                    close(server)
                    return
                }
                number += 1
                self.serve(number, Link(client: client, server: server))
            }
        }.start()
    }

    private func serve(_ number: Int, _ link: Link) {
        state.withLock { $0.links[number] = link }
        Thread { [self] in
            pass(from: link.client, to: link.server, client: link.client) { bytes in heard(bytes, number) }
            end(number)
        }.start()
        Thread { [self] in
            pass(from: link.server, to: link.client, client: link.client) { _ in answered(number) }
            end(number)
        }.start()
    }

    /// Ends one of the two threads of a connection. The files stay open until both have ended, because the kernel may
    /// reuse their numbers.
    private func end(_ number: Int) {
        let link = state.withLock { state in
            state.links[number]?.ended += 1
            return state.links[number]
        }
        guard let link else { return }
        Self.shut(link)
        guard link.ended == 2 else { return }
        state.withLock { $0.links[number] = nil }
        close(link.client)
        close(link.server)
    }

    private enum Verdict { case pass, drop, cut }

    /// Forwards bytes until either side closes, or the verdict is to cut.
    private func pass(from source: Int32, to sink: Int32, client: Int32, _ judge: ([UInt8]) -> Verdict) {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = recv(source, &buffer, buffer.count, 0)
            guard count > 0 else { return }
            switch judge(Array(buffer[..<count])) {
            case .cut: return
            case .drop: continue
            case .pass: break
            }
            if source != client, let falsehood, let range = Data(buffer[..<count]).range(of: falsehood.said) {
                buffer.replaceSubrange(range, with: falsehood.heard)
            }
            var sent = 0
            while sent < count {
                let more = buffer[sent..<count].withUnsafeBytes {
                    send(sink, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
                }
                guard more > 0 else { return }
                sent += more
            }
        }
    }

    private func heard(_ bytes: [UInt8], _ number: Int) -> Verdict {
        state.withLock { state in
            if let text = state.awaited {
                if Data(bytes).range(of: Data(text.utf8)) != nil { state.awaited = nil }
                return .pass
            }
            guard let cut = state.cut, Data(bytes).range(of: Data(cut.text.utf8)) != nil else { return .pass }
            state.cut = nil
            state.cuts += 1
            switch cut {
            case .before: return .cut
            case .beforeAnswer: state.links[number]?.cutsAtAnswer = true
            case .silence: state.links[number]?.isSilent = true
            }
            return .pass
        }
    }

    private func answered(_ number: Int) -> Verdict {
        state.withLock { state in
            guard let link = state.links[number] else { return .cut }
            return link.cutsAtAnswer ? .cut : link.isSilent ? .drop : .pass
        }
    }

    private static func shut(_ link: Link) {
        shutdown(link.client, Int32(SHUT_RDWR))
        shutdown(link.server, Int32(SHUT_RDWR))
    }
}
