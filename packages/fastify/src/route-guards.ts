import { createGuard, type Guard, invalid, memoryStore, shorthandFields } from '@sluice/http'
import type { FastifyRequest } from 'fastify'
import type { RateLimitHandler, RateLimitPluginOptions, RouteRateLimitOptions } from './options.ts'

export type RateLimitGuard = Guard<FastifyRequest, RateLimitHandler>

/** The guards of routes that have limits of their own, each made once. */
export class RouteGuards {
  readonly #inherited: RouteRateLimitOptions
  readonly #guards = new WeakMap<RouteRateLimitOptions, RateLimitGuard>()

  constructor({ hook: _hook, global: _global, ...options }: RateLimitPluginOptions) {
    this.#inherited = { ...options, store: options.store ?? memoryStore() }
  }

  /** @throws SluiceError when an option is unknown, missing or out of range */
  of(options: RouteRateLimitOptions): RateLimitGuard {
    if (typeof options !== 'object' || options === null) {
      throw invalid({ option: 'config.rateLimit' }, options, 'an object of options, or false')
    }
    const known = this.#guards.get(options)
    if (known) return known
    const guard = createGuard(this.#merged(options), {
      where: 'config.rateLimit',
      identifiedByScope: true,
    })
    this.#guards.set(options, guard)
    return guard
  }

  #merged(options: RouteRateLimitOptions): RouteRateLimitOptions {
    const policyFields = ['policies', ...shorthandFields]
    const isReplaced = Object.keys(options).some((field) => policyFields.includes(field))
    const inherited = Object.entries(this.#inherited).filter(
      ([field]) => !isReplaced || !policyFields.includes(field),
    )
    return { ...Object.fromEntries(inherited), ...options }
  }
}
