/// Everything a store must remember, for whoever wires a program together. Users take the roles they need.
package typealias AllRoles = DeliveryQueue & RunLog & DeviceRegistry & OutcomeReader & DaemonLog & StoreUpkeep
