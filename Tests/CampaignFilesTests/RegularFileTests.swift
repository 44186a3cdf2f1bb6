import CampaignFiles
import Foundation
import Model
import TestSupport
import Testing

/// What must never be waited for, or read without end.
@Suite(.timeLimit(.minutes(10))) struct `Files that are none` {
    private let folder: TemporaryDirectory

    init() throws {
        folder = try TemporaryDirectory()
    }

    private func said(_ name: String) -> [String] {
        CampaignFile.load(path: folder.file(name)).1.map { $0.description.replacing("\(folder.path)/", with: "") }
    }

    @Test func `a named pipe that nobody writes to is refused at once`() throws {
        #expect(mkfifo(folder.file("a.yaml"), 0o600) == 0)
        #expect(
            said("a.yaml") == [
                "a.yaml: error: is a named pipe, and is not read; put a regular file in its place, or move it away"
            ])
        #expect(throws: RegularFile.Fault.self) { try RegularFile.read(folder.file("a.yaml")) }
    }

    @Test func `a socket is refused`() throws {
        let socket = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(socket) }
        let path = folder.file("s")
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        try #require(path.utf8.count < MemoryLayout.size(ofValue: address.sun_path))
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        let bound = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(socket, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        try #require(bound == 0)
        #expect(said("s").first?.contains("is a socket, and is not read") == true)
    }

    @Test(arguments: ["/dev/zero", "/dev/null"])
    func `a device behind a link is refused`(device: String) throws {
        try FileManager.default.createSymbolicLink(atPath: folder.file("d.yaml"), withDestinationPath: device)
        let message = said("d.yaml").first ?? ""
        #expect(message.contains("is a device, and is not read"), "\(message)")
    }

    @Test func `a reason that is none of the file's has advice of its own`() {
        let own = RegularFile.unreadable(EMFILE).description
        #expect(own.hasPrefix("cannot be read (Too many open files); ") && own.contains("LimitNOFILE="), "\(own)")
        #expect(RegularFile.unreadable(ENFILE).description.contains("fs.file-max"))
        let refused = RegularFile.unreadable(EACCES).description
        #expect(refused == "cannot be read (Permission denied); check its permissions")
        #expect(RegularFile.unreadable(ENOENT).description == "no such file; check the path")
    }

    @Test func `a file is read to its limit and no further`() throws {
        try folder.write([UInt8](repeating: 0x20, count: FileText.bytesMax), to: "most.yaml")
        try folder.write([UInt8](repeating: 0x20, count: FileText.bytesMax + 1), to: "more.yaml")
        #expect(try RegularFile.read(folder.file("most.yaml")).count == FileText.bytesMax)
        #expect(said("more.yaml").first?.contains("is larger than 1048576 bytes") == true)
        // The sparse terabyte of a mistake costs nothing.
        #expect(truncate(folder.file("more.yaml"), 1 << 40) == 0)
        #expect(said("more.yaml").first?.contains("is larger than 1048576 bytes") == true)
    }

    @Test func `values of a run may come from a pipe, as a shell hands them over`() throws {
        let path = folder.file("values")
        #expect(mkfifo(path, 0o600) == 0)
        let writer = Process()
        writer.executableURL = URL(fileURLWithPath: "/bin/sh")
        writer.arguments = ["-c", "echo 'title: T' > \"$0\"", path]
        try writer.run()
        #expect(VariablesFile.load(path: path).values == ["title": "T"])
        writer.waitForEnd()
    }
}
