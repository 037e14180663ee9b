import { type CustomDecorator, type ExecutionContext, SetMetadata } from '@nestjs/common'
import { checkResolver, invalid, isOptions, type KeyResolver } from '@sluice/http'
import type { HandlerRateLimit } from './options.ts'

export const limitsName = '@sluice/nest/limits'
export const keyName = '@sluice/nest/key'

/** A string is the name of a policy, `false` means no limits, and `true` the module's limits. */
export type Limits = HandlerRateLimit | string | boolean

/**
 * Limits a handler, or all handlers of a controller together, instead of the module's policies. A
 * string is the name of one of the module's policies. A decorator on a handler replaces the same
 * decorator on its controller.
 * @example
 * @RateLimit({ limit: 5, window: '1m' })
 * @throws SluiceError if it is neither; the options are checked when the application starts
 */
export function RateLimit(limits: HandlerRateLimit | string): CustomDecorator {
  if (!isOptions(limits) && typeof limits !== 'string') {
    throw invalid({ option: '@RateLimit' }, limits, 'options, or the name of a policy')
  }
  return SetMetadata(limitsName, limits)
}

/**
 * Exempts a handler, or all handlers of a controller, from limits.
 * @param skip `false` restores the module's limits
 */
export function SkipRateLimit(skip = true): CustomDecorator {
  return SetMetadata(limitsName, !skip)
}

/**
 * Sets the key to count at a handler, or at all handlers of a controller, for policies without
 * their own key.
 * @example
 * @RateLimitKey(user((context) => context.switchToHttp().getRequest().user?.id))
 * @throws SluiceError if it is not a resolver
 */
export function RateLimitKey(key: KeyResolver<ExecutionContext>): CustomDecorator {
  checkResolver(key, '@RateLimitKey')
  return SetMetadata(keyName, key)
}
