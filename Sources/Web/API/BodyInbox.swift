import Hummingbird
import Synchronization

/// A bounded buffer for a request's body. One task reads the connection while another processes what has arrived. The
/// reading task pauses while the buffer is full.
final class BodyInbox: Sendable {
    /// The number of buffered bytes from which the reading task pauses. The client then cannot send more.
    private static let waitingBytesMax = 1 << 20
    /// The time to wait for more from a slow client, before the caller processes the bytes that it has.
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

    /// Returns the bytes that have arrived, or an empty array at the end. If the body broke off, throws after all
    /// earlier bytes are taken.
    ///
    /// - Parameter briefly: whether the caller already has bytes to process. If so, the method returns `nil` if nothing
    ///   more arrives within 10 ms.
    func nextPiece(briefly: Bool) async throws -> [UInt8]? {
        if briefly {
            guard hasNothing else { return try taken() }
            try await Task.sleep(for: Self.gatherTime)
            return hasNothing ? nil : try taken()
        }
        await waitForBytes()
        return try taken()
    }

    /// Discards the buffered bytes and all later ones, because the caller no longer needs them.
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
    /// Returns a response of JSON lines. `write` writes them as it produces them.
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
