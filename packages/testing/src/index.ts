export {
  type OpenedStore,
  type StoreConformanceOptions,
  storeConformance,
} from './conformance/store/store-conformance.ts'
export type { TestRunner } from './conformance/test-runner.ts'
export {
  expectLimited,
  expectNotLimited,
  type LimitedExpectations,
  type NotLimitedExpectations,
} from './expect-limited.ts'
export { type FakeClock, type FakeClockOptions, fakeClock } from './fake-clock.ts'
export { type DenyOptions, type TestStore, testStore } from './test-store.ts'
