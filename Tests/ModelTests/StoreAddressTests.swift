import Model
import Testing

struct StoreAddressTests {
    @Test(arguments: ["/var/lib/fanfare/fanfare.sqlite", "fanfare.sqlite", "./a b.sqlite", "postgres", "a:b", "c:/x"])
    func `a path is a path, and shown as it is`(path: String) {
        let address = StoreAddress(path)
        #expect(!address.isURL && address.postgres == nil && "\(address)" == path)
    }

    @Test(arguments: [
        "postgres://u:hunter2@h/d", "POSTGRESQL://u:hunter2@h/d?password=hunter2", "postgres:/u:hunter2@h/d",
        "postgres://u:hunter2/hunter2@h/d", "mysql://u:hunter2@h/d", "host=h password=hunter2", "dbname=hunter2",
        "postgres://u:hunter2@", "sqlite:///hunter2",
    ])
    func `whatever may hold a password is shown without it`(url: String) {
        let address = StoreAddress(url)
        var dumped = ""
        dump(address, to: &dumped)
        #expect(address.isURL && !"\(address)".contains("hunter2") && !dumped.contains("hunter2"))
    }

    @Test func `files that a URL names are exchanged, and nothing else`() {
        let url = "postgres://u:p%40ss@h/d?password_file=/a/b%20c&sslmode=require&sslrootcert=/ca"
        let handed = StoreAddress(url).withFiles { $0 == "/a/b c" ? "/run/x y&z" : $0 }
        #expect(handed == "postgres://u:p%40ss@h/d?password_file=/run/x%20y%26z&sslmode=require&sslrootcert=/ca")
        #expect(StoreAddress("/a?password_file=/a").withFiles { _ in "/b" } == "/a?password_file=/a")
    }

    @Test func `the command that copies a database holds no password and can be typed`() throws {
        let address = try PostgresAddress("postgres://u:hunter2@db1:5433,db2/fan%20fare")
        #expect(
            address.dumpCommand(to: "a'b")
                == #"pg_dump --format=custom '--file=a'\''b' --host=db1,db2 --port=5433,5432 --username=u '--dbname=fan fare'"#
        )
    }
}
