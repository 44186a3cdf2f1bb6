import Dispatch
import Synchronization

/// Threads for work that takes all of a processor for a while. The cooperative pool sends pushes and serves requests,
/// so such work is not done on it. Each queue has one thread; the work goes to the queues in turn.
package final class QueueThreads: TaskExecutor {
    private let queues: [DispatchQueue]
    private let count = Atomic(0)

    /// - Parameter names: the names of the queues.
    package init(_ names: [String]) { queues = names.map { DispatchQueue(label: $0) } }

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        let index = count.wrappingAdd(1, ordering: .relaxed).newValue.magnitude % queues.count.magnitude
        queues[Int(index)].async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}
