import PostgresStore
import StoreContract
import TestSupport
import Testing

/// PostgreSQL keeps every promise of every role.
@Suite(.timeLimit(.minutes(30)), .enabled(if: PostgresCluster.isAvailable, PostgresCluster.missing))
struct ContractTests {
    @Test(arguments: DeliveryQueueContract.promises)
    func `the delivery queue keeps its promises`(promise: Promise) async throws { try await check(promise) }

    @Test(arguments: DeliveryQueueContract.silentBudgetPromises)
    func `the silent budget is kept`(promise: Promise) async throws { try await check(promise) }

    @Test(arguments: DeliveryQueueContract.frequencyCapPromises)
    func `the frequency caps are kept`(promise: Promise) async throws { try await check(promise) }

    @Test(arguments: RunLogContract.promises)
    func `the run log keeps its promises`(promise: Promise) async throws { try await check(promise) }

    @Test(arguments: DeviceRegistryContract.promises)
    func `the device registry keeps its promises`(promise: Promise) async throws { try await check(promise) }

    @Test(arguments: OutcomeReaderContract.promises)
    func `the outcome reader keeps its promises`(promise: Promise) async throws { try await check(promise) }

    @Test(arguments: DaemonLogContract.promises)
    func `the daemon log keeps its promises`(promise: Promise) async throws { try await check(promise) }

    @Test(arguments: ProviderTokenLogContract.promises)
    func `the provider token log keeps its promises`(promise: Promise) async throws { try await check(promise) }

    @Test(arguments: AccessLogContract.promises)
    func `the access log keeps its promises`(promise: Promise) async throws { try await check(promise) }

    @Test(arguments: StoreUpkeepContract.promises)
    func `upkeep keeps its promises`(promise: Promise) async throws { try await check(promise) }
}
