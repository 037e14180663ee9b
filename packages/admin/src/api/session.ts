import type { Answering } from './context.ts'

/** What the page has to know before it shows anything. */
export const session: Answering = ({ admin, who }) => {
  const { instance, policies, metrics, queues, store } = admin
  const hasLimiters = (policies?.limiters.length ?? 0) > 0
  return {
    ...who,
    instance,
    features: {
      policies: policies !== undefined,
      changes: policies?.canChange ?? false,
      keys: hasLimiters,
      metrics: metrics !== undefined,
      queues: queues.length > 0,
      unlock: store()?.forgetPolicy !== undefined,
    },
    keys: hasLimiters ? (policies?.keyNames ?? []) : [],
  }
}
