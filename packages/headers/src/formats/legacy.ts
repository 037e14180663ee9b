import { policyNameProblem } from '../values/policy-name.ts'
import {
  type BindingPolicy,
  bindingPolicy,
  maxInteger,
  wholeSeconds,
} from '../values/policy-state.ts'
import type { DialectFormat } from './dialect-format.ts'

const fieldNames = ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset']

/** The reset in epoch seconds: Octokit reads nothing else, and retries at once if it is a delta. */
export const legacy: DialectFormat = legacyFormat('legacy', epochSeconds)

/** The reset in seconds from now. */
export const legacyDelta: DialectFormat = legacyFormat('legacy-delta', wholeSeconds)

/** The fields of `legacy`, plus the used units and the policy, as GitHub sends them. */
export const legacyGithub: DialectFormat = {
  name: 'legacy-github',
  family: 'legacy',
  fieldNames: [...fieldNames, 'X-RateLimit-Used', 'X-RateLimit-Resource'],
  add(lines, states, options) {
    legacy.add(lines, states, options)
    const binding = bindingPolicy(states, options.rejected)
    if (binding === undefined) return
    lines.push(['X-RateLimit-Used', `${binding.limit - legacyRemaining(binding)}`])
    const { name } = binding.state
    if (policyNameProblem(name) !== 'illegal') lines.push(['X-RateLimit-Resource', name])
  },
}

function legacyFormat(
  name: DialectFormat['name'],
  resetSeconds: (resetMs: number, nowMs: number) => number | undefined,
): DialectFormat {
  return {
    name,
    family: 'legacy',
    fieldNames,
    add(lines, states, { rejected, nowMs }) {
      const binding = bindingPolicy(states, rejected)
      if (binding === undefined) return
      const { limit, resetMs } = binding
      const remaining = legacyRemaining(binding)
      lines.push(['X-RateLimit-Limit', `${limit}`], ['X-RateLimit-Remaining', `${remaining}`])
      const reset = resetMs === undefined ? undefined : resetSeconds(resetMs, nowMs)
      if (reset !== undefined) lines.push(['X-RateLimit-Reset', `${reset}`])
    },
  }
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
