import HTTPTypes
import Hummingbird
import NIOCore
import NIOHTTPTypes

/// Enforces ``ServerLimits`` on a connection: the client must send its request and read its response in time.
final class ProgressHandler: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPRequestPart
    typealias InboundOut = HTTPRequestPart
    typealias OutboundIn = HTTPResponsePart
    typealias OutboundOut = HTTPResponsePart

    /// The size of the kernel's send buffer for a client, in bytes. By default the kernel buffers megabytes for each
    /// client that does not read.
    private static let kernelBytes = 128 << 10

    private let limits: ServerLimits
    private let table: ConnectionTable
    /// The connection's number in the table. `nil` if the table did not admit the connection, or after it closed.
    private var number: Int?
    private var waitsSince: Duration?
    private var progress: ConnectionProgress
    private var looks: RepeatedTask?
    private var loop: (any EventLoop)?
    private var hasLeft = false
    /// The streams of ``untilClientLeaves()`` that have not ended, by number.
    private var watchers: [Int: AsyncStream<Never>.Continuation] = [:]
    private var lastWatcher = 0

    init(_ limits: ServerLimits, _ table: ConnectionTable) {
        self.limits = limits
        self.table = table
        progress = ConnectionProgress(limits, at: .zero)
    }

    func handlerAdded(context: ChannelHandlerContext) {
        loop = context.eventLoop
        try? context.channel.syncOptions?.setOption(
            .socketOption(.so_sndbuf), value: SocketOptionValue(Self.kernelBytes))
        progress = ConnectionProgress(limits, at: Self.now(context))
        let own = NIOLoopBound((handler: self, context: context), eventLoop: context.eventLoop)
        let every = TimeAmount(limits.lookEvery)
        looks = context.eventLoop.scheduleRepeatedTask(initialDelay: every, delay: every) { _ in
            own.value.handler.look(own.value.context)
        }
    }

    func channelActive(context: ChannelHandlerContext) {
        waitsSince = progress.waitsSince
        number = table.admit(
            .init(
                address: context.channel.remoteAddress?.ipAddress ?? "", waitsSince: waitsSince,
                close: { [channel = context.channel] in channel.close(promise: nil) }))
        context.fireChannelActive()
        if number == nil { context.close(promise: nil) }
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        stop()
        clientLeft()
        leaveTable()
    }

    /// Returns a stream that ends when the client closes its sending side or the connection closes. The handler keeps
    /// the stream's continuation until the reader stops waiting.
    func untilClientLeaves() -> AsyncStream<Never> {
        let (stream, watcher) = AsyncStream.makeStream(of: Never.self)
        guard !hasLeft, let loop else {
            watcher.finish()
            return stream
        }
        lastWatcher += 1
        watchers[lastWatcher] = watcher
        let own = NIOLoopBound(self, eventLoop: loop)
        watcher.onTermination = { [id = lastWatcher] _ in
            loop.execute { own.value.watchers[id] = nil }
        }
        return stream
    }

    private func clientLeft() {
        hasLeft = true
        for watcher in watchers.values { watcher.finish() }
        watchers = [:]
    }

    func channelInactive(context: ChannelHandlerContext) {
        stop()
        clientLeft()
        leaveTable()
        context.fireChannelInactive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head: progress.requestBegan(at: Self.now(context))
        case .body(let bytes): progress.bodyArrived(bytes.readableBytes, at: Self.now(context))
        case .end: progress.requestEnded()
        }
        keepTable()
        context.fireChannelRead(data)
    }

    func read(context: ChannelHandlerContext) {
        progress.wants(at: Self.now(context))
        context.read()
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case .some(.inputClosed) = event as? ChannelEvent {
            progress.inputClosed(at: Self.now(context))
            clientLeft()
        }
        context.fireUserInboundEventTriggered(event)
    }

    /// Reports a body that breaks off or violates HTTP/1.1 as the client's error, with status 400. The code that reads
    /// the body receives this error.
    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard progress.breaksBody(at: Self.now(context)) else { return context.fireErrorCaught(error) }
        context.fireErrorCaught(
            HTTPError(.badRequest, message: "the body broke off, or its chunks do not follow HTTP/1.1; send it again"))
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        measure(context)
        switch unwrapOutboundIn(data) {
        case .head: progress.answerBegan()
        case .body: break
        case .end:
            progress.answerEnded(at: Self.now(context))
            keepTable()
            guard progress.isLastAnswer else { break }
            context.writeAndFlush(data, promise: promise)
            return context.close(promise: nil)
        }
        context.write(data, promise: promise)
    }

    func flush(context: ChannelHandlerContext) {
        context.flush()
        measure(context)
    }

    func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        if mode == .output { progress.outputClosed(at: Self.now(context)) }
        context.close(mode: mode, promise: promise)
    }

    private func look(_ context: ChannelHandlerContext) {
        let now = Self.now(context)
        measure(context)
        switch progress.look(at: now) {
        case .wait: break
        case .refuseUpload:
            context.fireErrorCaught(
                HTTPError(
                    .requestTimeout,
                    message:
                        "the body arrived at less than \(limits.uploadBytesPerSecond) bytes a second; send it again, in parts "
                        + "if the network is slow"))
        case .close: context.close(promise: nil)
        }
    }

    private func stop() {
        looks?.cancel()
        looks = nil
    }

    private func measure(_ context: ChannelHandlerContext) {
        let bytes = (try? context.channel.syncOptions?.getOption(.bufferedWritableBytes)) ?? 0
        progress.isLeft(bytes, at: Self.now(context))
        keepTable()
    }

    /// Records that a caller on this connection is authenticated.
    func becameKnown() {
        if let number { table.becameKnown(number) }
    }

    private func keepTable() {
        guard let number, progress.waitsSince != waitsSince else { return }
        waitsSince = progress.waitsSince
        table.waits(number, since: waitsSince)
    }

    private func leaveTable() {
        if let number { table.left(number) }
        number = nil
    }

    private static func now(_ context: ChannelHandlerContext) -> Duration {
        .nanoseconds(Int64(clamping: context.eventLoop.now.uptimeNanoseconds))
    }
}
