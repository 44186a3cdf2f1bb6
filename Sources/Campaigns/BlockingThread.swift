import Foundation

/// Runs work that waits for other processes or files on a thread of its own: git may take 10 s for each query, and a
/// file system may not respond at all. On a machine with two processors, one such wait would block half of the threads
/// that tasks share. These threads also send pushes.
enum BlockingThread {
    /// - Parameter name: the thread's name.
    static func run<Value: Sendable>(_ name: String, _ body: @escaping @Sendable () -> Value) async -> Value {
        await withCheckedContinuation { continuation in
            Thread {
                Thread.current.name = name
                continuation.resume(returning: body())
            }
            .start()
        }
    }
}
