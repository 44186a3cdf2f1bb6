import Model

extension ConfigurationKeys {
    enum Log {
        static let format = Key(
            "format", ValueDecoder<Configuration.Log.Format>.word,
            "text, json, or journal with the priority before each line (default: journal if standard error is the "
                + "journal, else text).")
        static let level = Key(
            "level", ValueDecoder<Configuration.Log.Level>.word,
            "The least severe level that is logged (default: info for the daemon and in the journal, else warning).")
        static let shape = ObjectShape("log", "The level and format of the log.", [format.shape, level.shape])
    }
}

extension ValueDecoder where Value == Configuration.Log {
    static var log: ValueDecoder {
        .object(ConfigurationKeys.Log.shape) { reader in
            Configuration.Log(
                format: reader[ConfigurationKeys.Log.format], level: reader[ConfigurationKeys.Log.level])
        }
    }
}
