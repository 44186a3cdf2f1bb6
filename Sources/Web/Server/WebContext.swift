import Hummingbird
import NIOCore

/// A request's context that knows its connection, and who asks once that is found out.
struct WebContext: RequestContext {
    var coreContext: CoreRequestContextStorage
    let channel: any Channel

    init(source: ApplicationRequestContextSource) {
        coreContext = CoreRequestContextStorage(source: source)
        channel = source.channel
    }

    /// Where the connection comes from, `127.0.0.1` or `::1`; empty where the kernel does not say.
    var clientAddress: String { channel.remoteAddress?.ipAddress ?? "" }
}
