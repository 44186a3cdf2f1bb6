import Hummingbird
import Synchronization

/// The pieces of a request's body that have arrived, and are not taken yet: somebody reads the connection while somebody
/// else is at work, and stops where too much waits.
final class BodyInbox: Sendable {
    /// Read from the connection and not taken. Beyond it the client is held back.
    private static let waitingBytesMax = 1 << 20
    /// Of a client that sends little at a time: how long more is waited for before what there is goes on.
    private static let gatherTime: Duration = .milliseconds(10)

    private struct State {
        var bytes: [UInt8] = []
        var isEnded = false
        var failure: (any Error)?
        var reader: CheckedContinuation<Void, Never>?
        var taker: CheckedContinuation<Void, Never>?
    }

    private let state = Mutex(State())

    /// Reads the body to its end.
    func fill(from body: RequestBody) async {
        do {
            for try await piece in body {
                put(piece)
                await waitForRoom()
            }
            try Task.checkCancellation()
            end(nil)
        } catch {
            end(error)
        }
    }

    /// What has arrived; empty: that was all. Throws where the body broke off, once everything before is taken.
    ///
    /// - Parameter briefly: something is at hand already: nil where nothing more arrives for a moment.
    func take(briefly: Bool) async throws -> [UInt8]? {
        if briefly {
            guard hasNothing else { return try taken() }
            try await Task.sleep(for: Self.gatherTime)
            return hasNothing ? nil : try taken()
        }
        await waitForBytes()
        return try taken()
    }

    /// Nobody takes any more.
    func close() {
        let reader = state.withLock { state in
            state.bytes = []
            state.isEnded = true
            defer { state.reader = nil }
            return state.reader
        }
        reader?.resume()
    }

    private var hasNothing: Bool { state.withLock { $0.bytes.isEmpty && !$0.isEnded } }

    private func taken() throws -> [UInt8] {
        let (bytes, failure, reader) = state.withLock { state in
            defer { (state.bytes, state.reader) = ([], nil) }
            return (state.bytes, state.bytes.isEmpty ? state.failure : nil, state.reader)
        }
        reader?.resume()
        if let failure { throw failure }
        return bytes
    }

    private func put(_ piece: ByteBuffer) {
        let taker = state.withLock { state in
            if !state.isEnded { state.bytes += piece.readableBytesView }
            defer { state.taker = nil }
            return state.taker
        }
        taker?.resume()
    }

    private func end(_ error: (any Error)?) {
        let taker = state.withLock { state in
            state.isEnded = true
            state.failure = state.failure ?? error
            defer { state.taker = nil }
            return state.taker
        }
        taker?.resume()
    }

    private func waitForRoom() async {
        await withCheckedContinuation { continuation in
            let goesOn = state.withLock { state in
                if state.bytes.count < Self.waitingBytesMax || state.isEnded { return true }
                state.reader = continuation
                return false
            }
            if goesOn { continuation.resume() }
        }
    }

    private func waitForBytes() async {
        await withCheckedContinuation { continuation in
            let goesOn = state.withLock { state in
                if !state.bytes.isEmpty || state.isEnded { return true }
                state.taker = continuation
                return false
            }
            if goesOn { continuation.resume() }
        }
    }
}

extension Response {
    /// Lines of JSON, written while they come about.
    static func jsonLines(_ write: @escaping @Sendable (inout any ResponseBodyWriter) async throws -> Void) -> Response
    {
        Response(
            status: .ok, headers: [.contentType: "application/x-ndjson", .cacheControl: "no-store"],
            body: ResponseBody { writer in
                try await write(&writer)
                try await writer.finish(nil)
            })
    }
}
