import Campaigns
import Hummingbird
import NIOCore
import Synchronization

/// The open live streams, limited for each caller and in total. Each stays open only while its caller is authorised.
final class LiveStreams: Sendable {
    /// The maximum number of streams of one caller. No person needs more live pages.
    static let perCallerMax = 32
    /// The maximum number of streams in total: half of the connections, so that live pages never block other requests.
    static let streamsMax = ServerLimits().connectionsMax / 2
    /// The interval between checks of a caller's session. The stream of an ended session closes after this time.
    private static let askEvery: Duration = .seconds(30)

    private let cases: UseCases
    private let open = Mutex<[String: Int]>([:])

    init(cases: UseCases) {
        self.cases = cases
    }

    /// Returns the stream, which ends with the session of its caller. The page then reloads, and asks the person to
    /// sign in.
    ///
    /// Throws if there are too many streams.
    ///
    /// - Parameters:
    ///   - name: the caller's name.
    ///   - isLetIn: whether the caller is still authorised, checked repeatedly. If it throws, the stream breaks off and
    ///     the browser reconnects.
    func admitted(
        _ response: Response, of name: String, while isLetIn: @escaping @Sendable () async throws -> Bool
    ) throws -> Response {
        let slot = try Slot(self, name)
        let body = response.body
        var response = response
        response.body = ResponseBody { [self] writer in
            defer { withExtendedLifetime(slot) {} }
            // Only one task at a time uses the writer: this task writes after the stream's own task has ended.
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
                // The stream may have ended by itself in the meantime.
                return (try? await group.next()) != .ofStream
            }
            guard isCut else { return }
            try await open.write(ByteBuffer(string: LiveFeed.end))
            try await open.finish(nil)
        }
        return response
    }

    /// A claim on one of the permitted streams. It is held for as long as its response is kept, whether written or not.
    final class Slot: Sendable {
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
            "\(name) has \(perCallerMax) live pages open, and each holds a connection; close some, or poll the state "
                + "instead, which holds no connection", retryAfter: retryAfter)
    }

    private static var tooMany: Problem {
        Problem(
            503, "busy", "Too many live pages",
            "\(streamsMax) live pages are open, and the remaining connections are reserved for other requests; poll "
                + "the state instead, or try again", retryAfter: retryAfter)
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
