/// What a store is: every role. Whoever wires a program together passes it on; users take the roles they need.
package typealias AllRoles = DeliveryQueue & RunLog & DeviceRegistry & OutcomeReader & DaemonLog & ProviderTokenLog
    & StoreUpkeep
