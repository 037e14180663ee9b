/**
 * The severity of a finding. `error`: requests are decided wrongly, or by the failure mode.
 * `warning`: they will be, if something happens. `note`: something that could not be checked, or is
 * good to know.
 */
export type Severity = 'error' | 'warning' | 'note' | 'ok'

export interface Finding {
  /** The subject: `connection`, `memory`, `clock`. */
  readonly check: string
  readonly severity: Severity
  readonly seen: string
  /** The fix. An `ok` has none. */
  readonly fix?: string
}

export type Findings = Readonly<Record<Severity, (seen: string, fix?: string) => Finding>>

/** Creates findings of one check, by severity. */
export function found(check: string): Findings {
  const of = (severity: Severity) => (seen: string, fix?: string) => {
    return { check, severity, seen, ...(fix !== undefined && { fix }) }
  }
  return { error: of('error'), warning: of('warning'), note: of('note'), ok: of('ok') }
}
