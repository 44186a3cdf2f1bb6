import Foundation

/// The kernel's figures for this process at one moment.
package struct OwnProcess: Hashable, Sendable {
    package var cpuSeconds: Double
    package var virtualBytes, residentBytes: Double
    package var openFiles, openFilesMax: Double
    /// Seconds since 1970.
    package var startedAt: Double

    package static var now: OwnProcess {
        var cpu = timespec()
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu)
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        let pages = numbers(in: text("statm"))
        let page = Double(sysconf(Int32(_SC_PAGESIZE)))
        let files = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd"))?.count ?? 0
        return OwnProcess(
            cpuSeconds: Double(cpu.tv_sec) + Double(cpu.tv_nsec) / 1e9, virtualBytes: (pages.first ?? 0) * page,
            residentBytes: (pages.dropFirst().first ?? 0) * page, openFiles: Double(files),
            openFilesMax: Double(limit.rlim_cur), startedAt: start)
    }

    private static let start: Double = {
        // The program's name is in parentheses and may contain any characters.
        let fields = text("stat").split(separator: ")").last.map { numbers(in: String($0)) } ?? []
        let now = Date().timeIntervalSince1970
        // The first field after the name is the state, which is not a number, so `fields` lacks it. The start is the
        // 19th number, in ticks since the boot.
        guard fields.count > 18 else { return now }
        var uptime = timespec()
        clock_gettime(CLOCK_BOOTTIME, &uptime)
        return now - (Double(uptime.tv_sec) - fields[18] / Double(sysconf(Int32(_SC_CLK_TCK))))
    }()

    private static func text(_ name: String) -> String {
        (try? String(contentsOfFile: "/proc/self/\(name)", encoding: .utf8)) ?? ""
    }

    private static func numbers(in text: String) -> [Double] { text.split(separator: " ").compactMap { Double($0) } }
}
