/// What a server announces and keeps to.
package struct ServerSettings: Sendable {
    package var vocabulary: HeaderVocabulary
    /// Of a new connection.
    package var streamLimit: Int
    package var streamWindowBytes = 65_535
    package var connectionWindowBytes = 65_535
    /// Announced only: what is longer is still taken, and counted in ``IncomingRequest/headerListSize``.
    package var headerListBytesMax = 8000
    /// Bytes of a body that are kept; what goes beyond is counted only.
    package var bodyBytesMax: Int

    package init(vocabulary: HeaderVocabulary, streamLimit: Int, bodyBytesMax: Int) {
        self.vocabulary = vocabulary
        self.streamLimit = streamLimit
        self.bodyBytesMax = bodyBytesMax
    }
}
