import Foundation

/// Wall and CPU time of this process from a moment on.
struct Stopwatch {
    private let start = ContinuousClock.now
    private let cpuAtStart = Usage.own.cpuSeconds

    var seconds: Double { (ContinuousClock.now - start) / .seconds(1) }
    var cpuSeconds: Double { Usage.own.cpuSeconds - cpuAtStart }
}

struct Usage {
    /// User and system time.
    let cpuSeconds: Double

    static var own: Usage { Usage(RUSAGE_SELF.rawValue) }
    /// Of the processes started and waited for.
    static var children: Usage { Usage(RUSAGE_CHILDREN.rawValue) }

    private init(_ who: Int32) {
        var usage = rusage()
        getrusage(__rusage_who_t(who), &usage)
        cpuSeconds =
            Double(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec)
            + Double(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6
    }

    /// Most memory resident at once. Not from `getrusage`: that one counts what the process was forked from.
    static var peakMegabytes: Double? {
        let status = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
        let line = status.split(separator: "\n").first { $0.hasPrefix("VmHWM:") }
        let kilobytes = line?.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap { Double($0) }
        return kilobytes.map { $0 / 1024 }
    }
}
