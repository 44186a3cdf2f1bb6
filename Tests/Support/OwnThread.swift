import Foundation
package import Testing

/// Performs work that waits for processes on a separate thread. The few threads that tests share then continue with
/// other tests.
///
/// The work stays part of its task, so that its test gets its failed expectations.
package enum OwnThread {
    package static func run<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
        try await withTaskExecutorPreference(ThreadPerJob.shared) { try await work(body) }
    }

    /// Runs on the executor that the task prefers.
    @concurrent private static func work<Value: Sendable>(_ body: @Sendable () throws -> Value) async throws -> Value {
        try body()
    }
}

/// Runs each test of a suite on its own threads. A test that waits for a process would otherwise block one of the few
/// threads that all tests share: two on a machine with two processors.
package struct OwnThreadTrait: SuiteTrait, TestTrait, TestScoping {
    package var isRecursive: Bool { true }

    package func scopeProvider(for test: Test, testCase: Test.Case?) -> OwnThreadTrait? { testCase == nil ? nil : self }

    package func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        try await withTaskExecutorPreference(ThreadPerJob.shared) { try await function() }
    }
}

extension Trait where Self == OwnThreadTrait {
    package static var ownThread: OwnThreadTrait { OwnThreadTrait() }
}

private final class ThreadPerJob: TaskExecutor {
    static let shared = ThreadPerJob()

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        Thread { [self] in job.runSynchronously(on: asUnownedTaskExecutor()) }.start()
    }
}
