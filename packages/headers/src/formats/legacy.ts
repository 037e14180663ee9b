import { policyNameProblem } from '../values/policy-name.ts'
import {
  type BindingPolicy,
  bindingPolicy,
  maxInteger,
  type PolicyState,
  wholeSeconds,
} from '../values/policy-state.ts'
import type { DialectFormat, FieldOptions, HeaderLine } from './dialect-format.ts'

const fieldNames = ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset']

/** The reset in epoch seconds: Octokit reads nothing else, and retries at once if it is a delta. */
export const legacy: DialectFormat = {
  name: 'legacy',
  family: 'legacy',
  fieldNames,
  add: (lines, states, options) =>
    void addFields(lines, { states, options, resetSeconds: epochSeconds }),
}

/** The fields of `legacy`, plus the used units and the policy, as GitHub sends them. */
export const legacyGithub: DialectFormat = {
  name: 'legacy-github',
  family: 'legacy',
  fieldNames: [...fieldNames, 'X-RateLimit-Used', 'X-RateLimit-Resource'],
  add(lines, states, options) {
    const binding = addFields(lines, { states, options, resetSeconds: epochSeconds })
    if (binding === undefined) return
    const { limit, name } = binding
    lines.push(['X-RateLimit-Used', `${limit - legacyRemaining(binding)}`])
    if (policyNameProblem(name) !== 'illegal') lines.push(['X-RateLimit-Resource', name])
  },
}

/** The reset in seconds from now. */
export const legacyDelta: DialectFormat = {
  name: 'legacy-delta',
  family: 'legacy',
  fieldNames,
  add: (lines, states, options) =>
    void addFields(lines, { states, options, resetSeconds: wholeSeconds }),
}

interface LegacyFields {
  readonly states: readonly PolicyState[]
  readonly options: FieldOptions
  resetSeconds(resetMs: number, nowMs: number): number | undefined
}

/** Appends the lines that all legacy dialects share. Returns the policy that they describe. */
function addFields(
  lines: HeaderLine[],
  { states, options, resetSeconds }: LegacyFields,
): BindingPolicy | undefined {
  const binding = bindingPolicy(states, options.rejected)
  if (binding === undefined) return undefined
  const { limit, resetMs } = binding
  const remaining = legacyRemaining(binding)
  const reset = resetMs === undefined ? undefined : resetSeconds(resetMs, options.nowMs)
  lines.push(['X-RateLimit-Limit', `${limit}`], ['X-RateLimit-Remaining', `${remaining}`])
  if (reset !== undefined) lines.push(['X-RateLimit-Reset', `${reset}`])
  return binding
}

/**
 * Octokit waits for the reset only if nothing remains. So a refused request gets 0, even if a few
 * units are left. If no wait helps, the true number stays, so that Octokit does not wait.
 */
function legacyRemaining({ violated, waitMs, remaining }: BindingPolicy): number {
  return violated && waitMs !== Number.POSITIVE_INFINITY ? 0 : remaining
}

/** The instant itself is rounded up, not the delta: two roundings would cost a client a second. */
function epochSeconds(resetMs: number, nowMs: number): number | undefined {
  const seconds = Math.ceil((nowMs + Math.max(0, resetMs)) / 1000)
  return seconds >= 0 && seconds <= maxInteger ? seconds : undefined
}
