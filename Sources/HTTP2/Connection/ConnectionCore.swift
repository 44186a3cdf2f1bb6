import CNGHTTP2
import Glibc

/// One TLS connection with its HTTP/2 session on an event loop: moves bytes between socket, TLS and nghttp2, and calls
/// its role. Owns the socket, the TLS state and the session. The loop's thread only.
final class ConnectionCore: EventHandler, TimerTarget {
    enum Side {
        case server, client
    }

    enum Stage {
        /// TLS is being agreed. Goes to `open` or `closed`.
        case handshaking
        /// Frames go both ways. Goes to `lingering`, `silent` or `closed`.
        case open
        /// Nothing is written any more, PING acknowledgements included, and what the peer sends is dropped: a dead peer
        /// behind a living network. Goes to `closed` when the other side gives up.
        case silent
        /// All is said; the peer's last bytes are read and dropped, so that closing does not destroy what we wrote
        /// last. Goes to `closed`.
        case lingering
        case closed
    }

    /// Bytes read before the other connections get their turn.
    private static let readBudgetBytes = 1 << 20
    /// Frames waiting to be written above which nothing more is read: the peer does not read its answers.
    private static let queuedFramesMax = 4000
    private static let lingerLimitMs = 1000

    private let loop: EventLoop
    private let socket: Int32
    private let side: Side
    private var tls: TLSStream?
    private var output = OutputBuffer()
    private(set) var session: OpaquePointer?
    private(set) var stage = Stage.handshaking
    /// Broken off by ``close()``: the two refer to each other.
    private var role: (any ConnectionRole)?
    private var interest: Readiness = .readable
    private var isOutputBlocked = false
    private var isAborted = false
    private var isFallingSilent = false
    /// The connection ends when all that is queued now is written.
    private var isEnding = false
    private var awaitsRoundEnd = false
    /// Reading, with writing to follow.
    private var isReceiving = false
    private var hasMoreInput = false
    private var end = ConnectionEnd.local
    /// How long TLS may take to be agreed. To be set before the start.
    var handshakeLimitMs = 10_000
    /// Looks over each chunk of frames before it is encrypted.
    var outputEdit: ((UnsafeMutableRawBufferPointer) -> Void)?
    /// A client is told the headers of the response on this stream, pseudo-headers aside; 0: of none.
    var fieldsWantedOn: Int32 = 0

    /// Takes the socket over, whatever happens.
    init(server context: TLSContext, socket: Int32, loop: EventLoop) {
        self.loop = loop
        self.socket = socket
        side = .server
        tls = TLSStream(server: context, socket: socket)
    }

    /// Takes the connected socket over, whatever happens.
    init(client context: TLSContext, to peer: TLSPeer, socket: Int32, loop: EventLoop) {
        self.loop = loop
        self.socket = socket
        side = .client
        tls = TLSStream(client: context, to: peer, socket: socket)
    }

    deinit {
        if let session { nghttp2_session_del(session) }
    }

    func start(_ role: any ConnectionRole) {
        self.role = role
        guard tls != nil, loop.watch(socket, for: interest, self) else { return close() }
        loop.schedule(afterMilliseconds: handshakeLimitMs, target: self, tag: 0)
        // The client speaks first.
        if side == .client { handshake() }
    }

    /// Nil before the handshake is done, or when the peer showed none.
    var peerCertificate: PeerCertificate? { stage == .open ? tls?.peerCertificate() : nil }

    var isTLSResumed: Bool { tls?.isResumed ?? false }

    /// Something was submitted outside of a callback: it is written at the end of the round.
    func submitted() {
        guard !awaitsRoundEnd, !isReceiving, stage == .open else { return }
        awaitsRoundEnd = true
        loop.atRoundEnd(self)
    }

    /// Ends the connection without a word at the next safe point.
    func abort() {
        isAborted = true
        if stage == .handshaking { return close() }
        submitted()
    }

    var isAborting: Bool { isAborted }

    /// Says nothing more from the next safe point on, and keeps the connection.
    func fallSilent() {
        isFallingSilent = true
        submitted()
    }

    /// Begins by saying nothing, in place of ``start(_:)``.
    func startSilent() {
        stage = .silent
        guard loop.watch(socket, for: interest, self) else { return close() }
    }

    /// Ends the connection once all that was submitted is written, streams without an answer or not.
    func endAfterOutput() {
        isEnding = true
        submitted()
    }
}

// MARK: Events

extension ConnectionCore {
    func ready(_ readiness: Readiness) {
        switch stage {
        case .handshaking: handshake()
        case .open:
            if !readiness.isDisjoint(with: [.readable, .broken]) {
                receive()
                role?.inputRead()
            }
            flush()
        case .lingering, .silent: drop()
        case .closed: break
        }
    }

    func roundEnded() {
        awaitsRoundEnd = false
        guard stage == .open else { return }
        if hasMoreInput {
            receive()
            role?.inputRead()
        }
        flush()
    }

    func timerFired(_ tag: Int64) {
        if stage == .handshaking { end = .handshake(.timedOut) }
        if stage == .handshaking || stage == .lingering { close() }
    }

    func abandon() {
        close()
    }

    private func handshake() {
        guard let progress = tls?.handshake() else { return close() }
        switch progress {
        case .wantsRead: setInterest(.readable)
        case .wantsWrite: setInterest(.writable)
        case .failed(let fault):
            end = .handshake(fault)
            close()
        case .done:
            session =
                side == .server
                ? SessionCallbacks.newServerSession(for: self) : ClientCallbacks.newSession(for: self, loop.memory)
            guard session != nil else { return close() }
            stage = .open
            role?.established()
            receive()
            role?.inputRead()
            flush()
        }
    }

    private func receive() {
        hasMoreInput = false
        isReceiving = true
        defer { isReceiving = false }
        var budget = Self.readBudgetBytes
        while stage == .open, let session {
            if isAborted { return close() }
            if isFallingSilent { return }
            if isOutputBlocked, nghttp2_session_get_outbound_queue_size(session) > Self.queuedFramesMax { return }
            guard let reading = tls?.read(into: loop.scratch) else { return close() }
            switch reading {
            case .wouldBlock: return
            case .ended(let fault):
                end = .peer(fault)
                return close()
            case .bytes(let count):
                let base = loop.scratch.baseAddress?.assumingMemoryBound(to: UInt8.self)
                // Below zero: no HTTP/2, flooded, or aborted by the role. A fault of the peer inside the protocol makes
                // nghttp2 submit a GOAWAY instead, and ask for no more input.
                guard nghttp2_session_mem_recv(session, base, count) >= 0 else {
                    flush()
                    return close()
                }
                budget -= count
            }
            if budget <= 0 {
                hasMoreInput = true
                return
            }
        }
    }

    private func flush() {
        guard stage == .open, let session else { return }
        if isFallingSilent, !isAborted { return hush() }
        while true {
            if isAborted { return close() }
            guard output.gather(from: session, edit: { outputEdit?($0) }) else { return close() }
            if output.isEmpty { break }
            guard let writing = tls?.write(output.pending) else { return close() }
            switch writing {
            case .bytes(let count): output.consume(count)
            case .broken(let fault):
                end = .peer(fault)
                return close()
            case .wouldBlock:
                isOutputBlocked = true
                return setInterest([.readable, .writable])
            }
        }
        // Reading may have stopped for want of room, and TLS may hold bytes that epoll knows nothing of.
        if isOutputBlocked { hasMoreInput = true }
        isOutputBlocked = false
        setInterest(.readable)
        if isEnding { return linger() }
        if nghttp2_session_want_read(session) == 0, nghttp2_session_want_write(session) == 0 { return linger() }
        if hasMoreInput { submitted() }
    }

    /// While the output is blocked and too much is queued, reading is pointless: wait for room only.
    private func setInterest(_ wanted: Readiness) {
        var wanted = wanted
        let isFull = session.map { nghttp2_session_get_outbound_queue_size($0) > Self.queuedFramesMax } ?? false
        if stage == .open, isOutputBlocked, isFull {
            wanted = .writable
        }
        guard wanted != interest else { return }
        interest = wanted
        loop.change(socket, to: wanted)
    }
}

// MARK: The end

extension ConnectionCore {
    private func linger() {
        stage = .lingering
        end = .finished
        endRole()
        tls?.sayGoodbye()
        shutdown(socket, Int32(SHUT_WR))
        loop.schedule(afterMilliseconds: Self.lingerLimitMs, target: self, tag: 0)
        drop()
    }

    private func hush() {
        stage = .silent
        setInterest(.readable)
        drop()
    }

    private func drop() {
        while stage == .lingering || stage == .silent {
            let count = recv(socket, loop.scratch.baseAddress, loop.scratch.count, 0)
            if count > 0 { continue }
            if count < 0, errno == EAGAIN { return setInterest(.readable) }
            if count < 0, errno == EINTR { continue }
            close()
        }
    }

    /// Not to be called inside nghttp2.
    private func close() {
        guard stage != .closed else { return }
        let isGoodbyeDue = stage == .open
        stage = .closed
        // First, so that whoever sees the connection end finds it in the role's books; and the role may still ask the
        // session what was written.
        endRole()
        if isGoodbyeDue { tls?.sayGoodbye() }
        loop.unwatch(socket)
        Glibc.close(socket)
        tls = nil
        output = OutputBuffer()
        if let session { nghttp2_session_del(session) }
        session = nil
    }

    private func endRole() {
        let ending = role
        role = nil
        ending?.connectionEnded(end)
    }
}

// MARK: From nghttp2

extension ConnectionCore {
    func headersBegan(stream: Int32) { role?.headersBegan(stream: stream) }

    func header(stream: Int32, name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer) {
        role?.header(stream: stream, name: name, value: value)
    }

    func data(stream: Int32, bytes: UnsafeRawBufferPointer) { role?.data(stream: stream, bytes: bytes) }

    func streamEnded(_ stream: Int32) { role?.streamEnded(stream) }

    func streamClosed(_ stream: Int32, code: UInt32) { role?.streamClosed(stream, code: code) }

    func controlFrame(_ frame: UnsafePointer<nghttp2_frame>) { role?.controlFrame(frame) }

    func requestNotSent(stream: Int32) { role?.requestNotSent(stream: stream) }
}
