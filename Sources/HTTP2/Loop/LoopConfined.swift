/// A value that is made on one thread and used on its loop's thread only.
struct LoopConfined<Value>: @unchecked Sendable {
    let value: Value

    init(_ value: Value) {
        self.value = value
    }
}
