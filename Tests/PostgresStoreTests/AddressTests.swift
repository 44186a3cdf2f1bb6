import Model
import Testing

@testable import PostgresStore

struct AddressTests {
    @Test func `a URL says user, password, hosts, database and options`() throws {
        let address = try PostgresAddress(
            "postgres://anna:p%40ss@db1:5433,[::1]:5434,db3/fan%20fare?sslmode=require&connect_timeout=3")
        #expect(address.user == "anna" && address.password == "p@ss" && address.database == "fan fare")
        #expect(address.hosts.map(\.description) == ["db1:5433", "[::1]:5434", "db3:5432"])
        #expect(address.connectTimeout == .seconds(3))
        #expect(address.description == "postgres://anna@db1:5433,[::1]:5434,db3:5432/fan fare")
    }

    @Test(arguments: [
        "postgres://u@/d?host=/run/pg", "postgres://u@%2Frun%2Fpg/d", "postgresql://u@/d?host=/run/pg&port=5432",
        "POSTGRES:///?host=/run/pg&dbname=d&user=u",
    ])
    func `a Unix socket is a folder`(url: String) throws {
        let address = try PostgresAddress(url)
        #expect(address.hosts.map(\.name) == ["/run/pg"] && address.hosts[0].isSocket)
        #expect(address.user == "u" && address.database == "d")
        // As a URL that leads there again.
        #expect(address.description == "postgres://u@/d?host=/run/pg")
    }

    @Test(arguments: [
        ("postgres://db.example/d", "verify-full"), ("postgres://10.0.0.7/d", "verify-full"),
        ("postgres://127.0.0.1.example/d", "verify-full"),
        ("postgres://db.example/d?sslmode=require", "require"), ("postgres://localhost/d", "prefer"),
        ("postgres://[::1]/d", "prefer"), ("postgres://127.0.0.2/d", "prefer"), ("postgres:///d", "prefer"),
        ("postgres://localhost/d?sslmode=verify-full", "verify-full"),
    ])
    func `a server elsewhere must prove its name unless the URL says otherwise`(url: String, mode: String) throws {
        let address = try PostgresAddress(url)
        let parameters = try address.parameters(for: address.hosts[0])
        #expect(parameters.first { $0.name == "sslmode" }?.value == mode)
    }

    @Test(arguments: [
        ("postgres://db/d", "any"), ("postgres://db1,db2/d", "read-write"),
        ("postgres://db1,db2/d?target_session_attrs=any", "any"),
    ])
    func `of several hosts, the one that may be written to is wanted`(url: String, wanted: String) throws {
        let address = try PostgresAddress(url)
        let parameters = try address.parameters(for: address.hosts[0])
        #expect(parameters.first { $0.name == "target_session_attrs" }?.value == wanted)
    }

    @Test(arguments: [
        ("mysql://h/d", PostgresAddressFault.notPostgres), ("postgres://h", .noDatabase),
        ("postgres://h/", .noDatabase),
        ("postgres://u:hunter2%zz@h/d", .badEscape), ("postgres://u:hun/ter2@h/d", .unescaped),
        ("postgres://h/d#hunter2", .unescaped),
        ("postgres://u:hun?ter2@h/d", .unescaped), ("postgres://h:hunter2/d", .badPort), ("postgres://h:0/d", .badPort),
        ("postgres://h/d?hunter2", .unknownOption(nil)), ("postgres://h/d?Hunter2=1", .unknownOption(nil)),
        ("postgres://h/d?sslmod=x", .unknownOption("sslmod")), ("postgres://a,b/d?port=1,2,3", .unequalPorts),
        ("postgres://h/d?sslmode=hunter2", .badValue(option: .sslmode, allowed: PostgresOption.sslmode.values ?? [])),
    ])
    func `what is wrong with a URL is said without repeating what may be a password`(
        url: String, fault: PostgresAddressFault
    ) {
        #expect(throws: fault) { try PostgresAddress(url) }
        #expect(!fault.description.contains("unter2") && !fault.description.contains("\n"))
    }

    @Test func `no description of an address holds its password`() throws {
        let address = try PostgresAddress("postgres://u:hunter2@h/d?password=hunter2&password_file=hunter2")
        var dumped = ""
        dump(address, to: &dumped)
        for text in ["\(address)", String(reflecting: address), dumped] { #expect(!text.contains("hunter2")) }
    }
}
