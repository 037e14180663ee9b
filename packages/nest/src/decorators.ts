import { type CustomDecorator, type ExecutionContext, SetMetadata } from '@nestjs/common'
import { checkResolver, invalid, isOptions, type KeyResolver } from '@sluice/http'
import type { HandlerRateLimit } from './options.ts'

export const limitsName = '@sluice/nest/limits'
export const keyName = '@sluice/nest/key'

/** A text is the name of a policy, `false` no limits, and `true` those of the module. */
export type Limits = HandlerRateLimit | string | boolean

/**
 * Limits a handler, or all handlers of a controller together, in place of the module's policies. A
 * text is the name of a policy of the module. A decorator on a handler replaces the same decorator
 * on its controller.
 * @example
 * @RateLimit({ limit: 5, window: '1m' })
 * @throws SluiceError when it is neither; the options are checked when the application starts
 */
export function RateLimit(limits: HandlerRateLimit | string): CustomDecorator {
  if (!isOptions(limits) && typeof limits !== 'string') {
    throw invalid({ option: '@RateLimit' }, limits, 'options, or the name of a policy')
  }
  return SetMetadata(limitsName, limits)
}

/**
 * Leaves a handler alone, or all handlers of a controller.
 * @param skip `false`: a handler has the module's limits all the same
 */
export function SkipRateLimit(skip = true): CustomDecorator {
  return SetMetadata(limitsName, !skip)
}

/**
 * Says who is counted at a handler, or at all handlers of a controller, by policies that have no
 * key of their own.
 * @example
 * @RateLimitKey(user((context) => context.switchToHttp().getRequest().user?.id))
 * @throws SluiceError when it is no resolver
 */
export function RateLimitKey(key: KeyResolver<ExecutionContext>): CustomDecorator {
  checkResolver(key, '@RateLimitKey')
  return SetMetadata(keyName, key)
}
