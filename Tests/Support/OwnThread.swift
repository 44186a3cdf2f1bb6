import Foundation

/// A thread for work that waits for processes: the few threads that tests share go on with other tests.
///
/// The work stays part of its task, so what it expects is recorded under the test that it belongs to.
package enum OwnThread {
    package static func run<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
        try await withTaskExecutorPreference(ThreadPerJob.shared) { try await work(body) }
    }

    /// Runs where the task prefers to.
    @concurrent private static func work<Value: Sendable>(_ body: @Sendable () throws -> Value) async throws -> Value {
        try body()
    }
}

private final class ThreadPerJob: TaskExecutor {
    static let shared = ThreadPerJob()

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        Thread { [self] in job.runSynchronously(on: asUnownedTaskExecutor()) }.start()
    }
}
