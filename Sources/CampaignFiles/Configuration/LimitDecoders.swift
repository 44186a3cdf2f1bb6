import Model

extension ValueDecoder where Value == Configuration.SilentBudget {
    static var silentBudget: ValueDecoder {
        .object(ConfigurationKeys.SilentBudget.shape) { reader in
            var budget = Configuration.SilentBudget()
            budget.limit = reader[ConfigurationKeys.SilentBudget.limit] ?? budget.limit
            budget.window = reader[ConfigurationKeys.SilentBudget.window] ?? budget.window
            return budget
        }
    }
}

extension ValueDecoder where Value == Configuration.VolumeBrake {
    static var volumeBrake: ValueDecoder {
        .object(ConfigurationKeys.VolumeBrake.shape) { reader in
            let atLeast = reader[ConfigurationKeys.VolumeBrake.atLeast]
            let growth = reader[ConfigurationKeys.VolumeBrake.maxGrowth]
            guard let times = reader[ConfigurationKeys.VolumeBrake.times] else { return nil }
            return Configuration.VolumeBrake(times: times, atLeast: atLeast ?? 1000, maxGrowthPercent: growth)
        }
    }
}
