package import Store

/// What sending a run asks of a store.
package typealias SendingStore = DeliveryQueue & RunLog
