export type {
  AdapterLimits,
  AdapterSetup,
  Serve,
  ServedApp,
} from './conformance/adapter/adapter-bench.ts'
export {
  type AdapterConformanceOptions,
  adapterConformance,
} from './conformance/adapter/adapter-conformance.ts'
export type { OpenedBroker } from './conformance/broker/broker-bench.ts'
export {
  type BrokerConformanceOptions,
  brokerConformance,
} from './conformance/broker/broker-conformance.ts'
export {
  type OpenedStore,
  type StoreConformanceOptions,
  storeConformance,
} from './conformance/store/store-conformance.ts'
export type { TestRunner, WaitingRunner } from './conformance/test-runner.ts'
export {
  expectLimited,
  expectNotLimited,
  type LimitedExpectations,
  type NotLimitedExpectations,
} from './expect-limited.ts'
export { type FakeClock, type FakeClockOptions, fakeClock } from './fake-clock.ts'
export { type DenyOptions, type TestStore, testStore } from './test-store.ts'
