import CNGHTTP2
import Glibc

/// One TLS connection with its HTTP/2 session on an event loop. It moves bytes between socket, TLS and nghttp2, and
/// calls its role. It owns the socket, the TLS state and the session. Only the loop's thread may use it.
final class ConnectionCore: EventHandler, TimerTarget {
    enum Side {
        case server, client
    }

    enum Phase {
        /// TLS is being negotiated. Becomes `open` or `closed`.
        case handshaking
        /// Frames flow in both directions. Becomes `lingering`, `silent`, `reading` or `closed`.
        case open
        /// Nothing is written any more, because the process stood still before it could write what it had gathered. The
        /// peer's responses to what it had written before are read. Becomes `closed`.
        case reading
        /// Nothing is written any more, not even PING acknowledgements, and received data is dropped. This simulates a
        /// dead peer on a working network. Becomes `closed` when the other side closes the connection.
        case silent
        /// All output is written. The peer's last bytes are read and dropped, because closing with unread bytes would
        /// reset the connection and could lose output. Becomes `closed`.
        case lingering
        case closed
    }

    /// The number of bytes read before other connections get their turn.
    private static let readBudgetBytes = 1 << 20
    /// The number of queued frames above which reading stops, because the peer does not read its responses.
    private static let queuedFramesMax = 4000
    private static let lingerLimitMs = 1000
    private static let outputLookTag: Int64 = 1

    private let loop: EventLoop
    private let socket: Int32
    private let side: Side
    private var tls: TLSStream?
    private var output = OutputBuffer()
    private(set) var session: OpaquePointer?
    private(set) var phase = Phase.handshaking
    /// The role. ``endRole()`` releases the reference, because role and core refer to each other.
    private var role: (any ConnectionRole)?
    private var interest: Readiness = .readable
    private var isOutputBlocked = false
    private var isAborted = false
    private var isFallingSilent = false
    /// Whether the connection ends once all submitted output is written.
    private var isEnding = false
    private var awaitsRoundEnd = false
    /// Whether data is being read. Submitted frames are then written directly afterwards.
    private var isReceiving = false
    private var hasMoreInput = false
    private var end = ConnectionEnd.local
    /// The time limit of the TLS handshake. Set it before ``start(_:)``.
    var handshakeLimitMs = 10_000
    /// Notices a standstill between the gathering of frames and their writing. `nil` for a server.
    var standstill: StandstillWatch?
    private var isOutputWatched = false
    /// The number of bytes of frames that were gathered since the start.
    private(set) var gatheredBytes: UInt64 = 0
    /// The number of these bytes in TLS records that were written whole. The peer can read no part of another record.
    private(set) var writtenBytes: UInt64 = 0
    /// Edits each chunk of frames before encryption.
    var outputEdit: ((UnsafeMutableRawBufferPointer) -> Void)?
    /// The stream whose response headers a client receives in full. Of other streams it receives only pseudo-headers. 0
    /// for none.
    var fieldsWantedOn: Int32 = 0

    /// Takes ownership of the socket in every case.
    init(server context: TLSContext, socket: Int32, loop: EventLoop) {
        self.loop = loop
        self.socket = socket
        side = .server
        tls = TLSStream(server: context, socket: socket)
    }

    /// Takes ownership of the connected socket in every case.
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
        // The client sends first.
        if side == .client { handshake() }
    }

    /// The peer's certificate. `nil` unless the connection is open and the peer showed one.
    var peerCertificate: PeerCertificate? { phase == .open ? tls?.peerCertificate() : nil }

    var isTLSResumed: Bool { tls?.isResumed ?? false }

    /// Records that a frame was submitted outside a callback. It is written at the end of the round.
    func submitted() {
        guard !awaitsRoundEnd, !isReceiving, isReadingFrames else { return }
        awaitsRoundEnd = true
        loop.atRoundEnd(self)
    }

    /// Ends the connection with no GOAWAY, at the next safe point. A connection that has fallen silent stays open.
    func abort() {
        isAborted = true
        if phase == .handshaking { return close() }
        submitted()
    }

    var isAborting: Bool { isAborted }

    /// Whether the peer's frames are read.
    private var isReadingFrames: Bool { phase == .open || phase == .reading }

    /// Stops all output at the next safe point, and keeps the connection.
    func fallSilent() {
        isFallingSilent = true
        submitted()
    }

    /// Starts in phase `silent`, in place of ``start(_:)``.
    func startSilent() {
        phase = .silent
        guard loop.watch(socket, for: interest, self) else { return close() }
    }

    /// Ends the connection once all submitted output is written, even if streams have no response.
    func endAfterOutput() {
        isEnding = true
        submitted()
    }
}

// MARK: Events

extension ConnectionCore {
    func ready(_ readiness: Readiness) {
        switch phase {
        case .handshaking: handshake()
        case .open, .reading:
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
        guard isReadingFrames else { return }
        if hasMoreInput {
            receive()
            role?.inputRead()
        }
        flush()
    }

    func timerFired(_ tag: Int64) {
        if tag == Self.outputLookTag { return lookAtOutput() }
        if phase == .handshaking { end = .handshake(.timedOut) }
        if phase == .handshaking || phase == .lingering { close() }
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
            phase = .open
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
        while isReadingFrames, let session {
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
                guard take(count, session) else {
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

    /// Passes the bytes in the scratch buffer to the session. Returns `false` if the peer does not speak HTTP/2 or
    /// floods, or if the role aborted. After any other protocol error, nghttp2 submits a GOAWAY and wants no more
    /// input.
    private func take(_ count: Int, _ session: OpaquePointer) -> Bool {
        nghttp2_session_mem_recv(session, loop.scratch.baseAddress?.assumingMemoryBound(to: UInt8.self), count) >= 0
    }

    private func flush() {
        if phase == .reading {
            if isAborted { return close() }
            return hasMoreInput ? submitted() : ()
        }
        guard phase == .open, let session else { return }
        if isFallingSilent, !isAborted { return hush() }
        while true {
            if isAborted { return close() }
            if output.isEmpty { standstill?.start() }
            guard output.gather(from: session, edit: gathered) else { return close() }
            if output.isEmpty { break }
            if standstill?.hasPassed() == true { return readOnly() }
            guard let writing = tls?.write(output.pending) else { return close() }
            switch writing {
            case .bytes(let count):
                output.consume(count)
                writtenBytes += UInt64(count)
            case .broken(let fault):
                end = .peer(fault)
                return closeUnwritten()
            case .wouldBlock:
                isOutputBlocked = true
                watchOutput()
                return setInterest([.readable, .writable])
            }
        }
        // Reading may have stopped because the output was full, and TLS may hold bytes that epoll does not report.
        if isOutputBlocked { hasMoreInput = true }
        isOutputBlocked = false
        setInterest(.readable)
        if isEnding { return linger() }
        if nghttp2_session_want_read(session) == 0, nghttp2_session_want_write(session) == 0 { return linger() }
        if hasMoreInput { submitted() }
    }

    private func gathered(_ frame: UnsafeMutableRawBufferPointer) {
        outputEdit?(frame)
        gatheredBytes += UInt64(frame.count)
    }

    /// Looks at the output from time to time while the peer does not take it.
    private func watchOutput() {
        guard let standstill, !isOutputWatched else { return }
        isOutputWatched = true
        loop.schedule(afterMilliseconds: standstill.lookEveryMs, target: self, tag: Self.outputLookTag)
    }

    private func lookAtOutput() {
        isOutputWatched = false
        guard phase == .open, isOutputBlocked else { return }
        if standstill?.hasPassed() == true { return readOnly() }
        watchOutput()
    }

    /// Sets the socket events to wait for. While the output is blocked and too many frames are queued, waits only to
    /// write.
    private func setInterest(_ wanted: Readiness) {
        var wanted = wanted
        let isFull = session.map { nghttp2_session_get_outbound_queue_size($0) > Self.queuedFramesMax } ?? false
        if phase == .open, isOutputBlocked, isFull {
            wanted = .writable
        }
        guard wanted != interest else { return }
        interest = wanted
        loop.change(socket, to: wanted)
    }
}

// MARK: Closing

extension ConnectionCore {
    private func linger() {
        phase = .lingering
        end = .finished
        endRole()
        tls?.sayGoodbye()
        shutdown(socket, Int32(SHUT_WR))
        loop.schedule(afterMilliseconds: Self.lingerLimitMs, target: self, tag: 0)
        drop()
    }

    private func hush() {
        phase = .silent
        setInterest(.readable)
        drop()
    }

    private func drop() {
        while phase == .lingering || phase == .silent {
            let count = recv(socket, loop.scratch.baseAddress, loop.scratch.count, 0)
            if count > 0 { continue }
            if count < 0, errno == EAGAIN { return setInterest(.readable) }
            if count < 0, errno == EINTR { continue }
            close()
        }
    }

    /// Closes the connection. Do not call it inside nghttp2.
    private func close() {
        guard phase != .closed else { return }
        // A goodbye must not complete a record that the peer did not take.
        let isGoodbyeDue = phase == .open && !isOutputBlocked
        phase = .closed
        // Notify the role first: it must know of the end before the peer does, and may still query the session.
        endRole()
        if isGoodbyeDue { tls?.sayGoodbye() }
        loop.unwatch(socket)
        Glibc.close(socket)
        tls = nil
        output = OutputBuffer()
        if let session { nghttp2_session_del(session) }
        session = nil
    }

    /// Drops what was gathered, and only reads from now on.
    private func readOnly() {
        phase = .reading
        output = OutputBuffer()
        isOutputBlocked = false
        // Reading may have stopped because the output was full.
        hasMoreInput = true
        setInterest(.readable)
        role?.outputEnded()
        submitted()
    }

    /// Closes the connection without writing what was gathered. A client first takes the responses that have arrived:
    /// without them, their requests would be in doubt, and might be sent again.
    private func closeUnwritten() {
        var budget = Self.readBudgetBytes
        while side == .client, budget > 0, let session, case .bytes(let count) = tls?.read(into: loop.scratch),
            take(count, session)
        {
            budget -= count
        }
        close()
    }

    private func endRole() {
        let ending = role
        role = nil
        ending?.connectionEnded(end)
    }
}

// MARK: Events from nghttp2

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
