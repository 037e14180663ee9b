/**
 * `illegal`: no header can contain it, so configuration must reject it. `unusual`: legal, but worth
 * a warning, since it is not also a structured token and a tidy metric label.
 */
export type PolicyNameProblem = 'illegal' | 'unusual'

export const printableAscii: RegExp = /^[\x20-\x7e]+$/
const recommended = /^[A-Za-z][A-Za-z0-9._-]{0,63}$/

/**
 * Returns the problem with a policy's name; `undefined` if there is none. A later draft may turn
 * names into tokens.
 */
export function policyNameProblem(name: string): PolicyNameProblem | undefined {
  if (!printableAscii.test(name)) return 'illegal'
  return recommended.test(name) ? undefined : 'unusual'
}
