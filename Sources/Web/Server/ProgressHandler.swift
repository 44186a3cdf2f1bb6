import HTTPTypes
import Hummingbird
import NIOCore
import NIOHTTPTypes

/// Sees to it that a connection's client does what it has to: sends its request, and takes its answer.
final class ProgressHandler: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPRequestPart
    typealias InboundOut = HTTPRequestPart
    typealias OutboundIn = HTTPResponsePart
    typealias OutboundOut = HTTPResponsePart

    /// What the kernel keeps for a client that does not read: by itself it would take megabytes for each.
    private static let kernelBytes = 128 << 10

    private let limits: ServerLimits
    private var progress: ConnectionProgress
    private var looks: RepeatedTask?
    private var hasLeft = false
    /// Of the request that is being answered, if it asked.
    private var watcher: AsyncStream<Never>.Continuation?

    init(_ limits: ServerLimits) {
        self.limits = limits
        progress = ConnectionProgress(limits, at: .zero)
    }

    func handlerAdded(context: ChannelHandlerContext) {
        try? context.channel.syncOptions?.setOption(
            .socketOption(.so_sndbuf), value: SocketOptionValue(Self.kernelBytes))
        progress = ConnectionProgress(limits, at: Self.now(context))
        let own = NIOLoopBound((handler: self, context: context), eventLoop: context.eventLoop)
        let every = TimeAmount(limits.lookEvery)
        looks = context.eventLoop.scheduleRepeatedTask(initialDelay: every, delay: every) { _ in
            own.value.handler.look(own.value.context)
        }
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        stop()
        clientLeft()
    }

    /// Ends when the client sends no more, or its connection is gone. For one request at a time.
    func untilClientLeaves() -> AsyncStream<Never> {
        let (stream, watcher) = AsyncStream.makeStream(of: Never.self)
        if hasLeft { watcher.finish() } else { self.watcher = watcher }
        return stream
    }

    private func clientLeft() {
        hasLeft = true
        watcher?.finish()
        watcher = nil
    }

    func channelInactive(context: ChannelHandlerContext) {
        stop()
        clientLeft()
        context.fireChannelInactive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head: progress.requestBegan()
        case .body(let bytes): progress.bodyArrived(bytes.readableBytes, at: Self.now(context))
        case .end: progress.requestEnded()
        }
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

    /// A body that breaks off, or is not what HTTP/1.1 says, is the client's doing: whoever reads it says so.
    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard progress.breaksBody(at: Self.now(context)) else { return context.fireErrorCaught(error) }
        context.fireErrorCaught(
            HTTPError(.badRequest, message: "the body broke off, or its parts are not as HTTP/1.1 has them"))
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        measure(context)
        switch unwrapOutboundIn(data) {
        case .head: progress.answerBegan()
        case .body: break
        case .end:
            progress.answerEnded(at: Self.now(context))
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
                        "the body came slower than \(limits.uploadBytesPerSecond) bytes a second; send it again, in parts "
                        + "where the line is slow"))
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
    }

    private static func now(_ context: ChannelHandlerContext) -> Duration {
        .nanoseconds(Int64(clamping: context.eventLoop.now.uptimeNanoseconds))
    }
}
