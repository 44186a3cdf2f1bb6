import Foundation
import Synchronization

/// Stands between a client and a cluster's Unix socket, hands on every byte, and cuts the connection where it is told to.
package final class CuttingProxy: Sendable {
    /// Once, at the first message of a client that holds the text.
    package enum Cut: Sendable {
        /// The server never hears of it.
        case before(String)
        /// The server has done it; its answer stays on the way.
        case beforeAnswer(to: String)
        /// As the latter, and nobody is told: the connection stays open in silence.
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
        /// Has to be heard first.
        var awaited: String?
        var cuts = 0
        var links: [Int: Link] = [:]
    }

    private let directory: TemporaryDirectory
    private let listener: Int32
    private let target: String
    /// What the server says, and what the client hears instead, as long.
    private let falsehood: (said: Data, heard: Data)?
    private let state = Mutex(State())

    /// - Parameter falsehood: what the server says in one piece, and what the client hears instead, as long.
    package init(to cluster: PostgresCluster, falsehood: (said: String, heard: String)? = nil) throws {
        self.falsehood = falsehood.map { (Data($0.said.utf8), Data($0.heard.utf8)) }
        directory = try TemporaryDirectory()
        target = "\(cluster.folder)/.s.PGSQL.5432"
        listener = try PostgresSocket.listen(directory.file(".s.PGSQL.5432"))
        accept()
    }

    deinit { shutdown(listener, Int32(SHUT_RDWR)) }

    package func url(_ database: String) -> String { "postgres://postgres@/\(database)?host=\(directory.path)" }

    /// - Parameter text: nothing is cut before this was heard; nil: at once.
    package func cut(_ cut: Cut, behind text: String? = nil) {
        state.withLock { ($0.cut, $0.awaited) = (cut, text) }
    }

    /// How often it was done.
    package var cuts: Int { state.withLock { $0.cuts } }

    /// Every connection at once.
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

    /// One of the two threads of a connection is at its end. The files stay open until both are: their numbers would be
    /// somebody else's.
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

    /// Until either side is closed, or the verdict is to cut.
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
