import Systemd
import TestSupport
import Testing

struct `A unit on this machine` {
    @Test func `reads a unit and its drop-ins as systemd does`() throws {
        let folder = try TemporaryDirectory()
        try folder.write(
            """
            [Service]
            ExecStart=/usr/bin/fanfare serve --create --config /etc/fanfare/fanfare.yaml
            User=fanfare
            # User=other
            LoadCredential=keys:/etc/fanfare/keys
            StateDirectory=fanfare

            """,
            to: "lib/fanfare.service")
        try folder.write(
            "[Service]\nLoadCredential=more:/srv/more.p8\n", to: "etc/fanfare.service.d/10.conf")
        let unit = try #require(InstalledUnit.read(folders: [folder.file("etc"), folder.file("lib")]))
        #expect(unit.user == "fanfare" && unit.stateDirectory == "fanfare")
        #expect(unit.configuration == "/etc/fanfare/fanfare.yaml")
        #expect(unit.credentials == ["keys": "/etc/fanfare/keys", "more": "/srv/more.p8"])
        #expect(InstalledUnit.read(folders: [folder.file("none")]) == nil)
    }
}
