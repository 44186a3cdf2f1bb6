import Campaigns
import Hummingbird
import NIOCore
import Synchronization

/// The live streams that are open: so many for each caller and in all, each for as long as whoever asked for it is let in.
final class LiveStreams: Sendable {
    /// Of one name: a person with more pages than this in sight has other troubles.
    static let perCallerMax = 32
    /// Half of the connections: pages that stay open never keep another from being asked for.
    static let streamsMax = ServerLimits().connectionsMax / 2
    /// A session that was ended, or is over, is noticed after this.
    private static let askEvery: Duration = .seconds(30)

    private let cases: UseCases
    private let open = Mutex<[String: Int]>([:])

    init(cases: UseCases) {
        self.cases = cases
    }

    /// The stream, which ends with the session of its caller: the page asks anew then, and is told to sign in.
    ///
    /// Throws where there are too many.
    ///
    /// - Parameters:
    ///   - name: of the caller.
    ///   - isLetIn: asked again and again. Where it throws the stream breaks off, and the browser comes back.
    func admitted(
        _ response: Response, of name: String, while isLetIn: @escaping @Sendable () async throws -> Bool
    ) throws -> Response {
        let seat = try Seat(self, name)
        let body = response.body
        var response = response
        response.body = ResponseBody { [self] writer in
            defer { withExtendedLifetime(seat) {} }
            // Used by one task at a time: by this one once the stream's own has ended.
            nonisolated(unsafe) var open = writer
            let isCut = try await withThrowingTaskGroup(of: End.self) { group in
                group.addTask {
                    try await body.write(open)
                    return .ofStream
                }
                group.addTask {
                    while try await isLetIn() { try await self.pause() }
                    return .ofSession
                }
                defer { group.cancelAll() }
                guard try await group.next() == .ofSession else { return false }
                group.cancelAll()
                // It may have come to its own end meanwhile.
                return (try? await group.next()) != .ofStream
            }
            guard isCut else { return }
            try await open.write(ByteBuffer(string: LiveFeed.end))
            try await open.finish(nil)
        }
        return response
    }

    /// One of the streams that may be open, for as long as its answer is kept, written or not.
    final class Seat: Sendable {
        private let streams: LiveStreams
        private let name: String

        init(_ streams: LiveStreams, _ name: String) throws {
            try streams.open.withLock { open in
                guard open[name, default: 0] < LiveStreams.perCallerMax else { throw LiveStreams.tooManyOf(name) }
                guard open.values.reduce(0, +) < LiveStreams.streamsMax else { throw LiveStreams.tooMany }
                open[name, default: 0] += 1
            }
            (self.streams, self.name) = (streams, name)
        }

        deinit {
            streams.open.withLock { open in
                let rest = open[name, default: 0] - 1
                open[name] = rest > 0 ? rest : nil
            }
        }
    }

    private static func tooManyOf(_ name: String) -> Problem {
        Problem(
            429, "too_many_streams", "Too many live pages",
            "\(name) has \(perCallerMax) live pages open, and each holds a connection; close some, or ask for the state "
                + "instead, which needs none", retryAfter: retryAfter)
    }

    private static var tooMany: Problem {
        Problem(
            503, "busy", "Too many live pages",
            "\(streamsMax) live pages are open here, and the other connections are for other requests; ask for the state "
                + "instead, or try again", retryAfter: retryAfter)
    }

    private static let retryAfter = 30

    private enum End: Sendable {
        case ofStream, ofSession
    }

    private func pause() async throws {
        await cases.sleep(Self.askEvery)
        try Task.checkCancellation()
    }
}
