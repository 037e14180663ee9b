import { linkTo } from './app-state.ts'
import { Badge, Name } from './basics.tsx'
import type { Column } from './table.tsx'

interface CountedIdentity {
  readonly digest: string
  readonly name?: string | undefined
  readonly policy: string
  readonly mode: 'enforce' | 'shadow'
  /** What a reader must know of the row. */
  readonly note?: string | undefined
}

/** Columns of an identity under a policy. */
export const identityColumns: readonly Column<CountedIdentity>[] = [
  {
    title: 'Identity',
    look: 'cut',
    cell: ({ digest, name }) => <Name href={linkTo('keys', digest)} text={name} digest={digest} />,
  },
  {
    title: 'Policy',
    by: ({ policy }) => policy,
    cell: ({ policy, mode, note }) => (
      <>
        {policy} {mode === 'shadow' && <Badge tone="shadow">shadow</Badge>}
        {note && <Badge tone="ok">{note}</Badge>}
      </>
    ),
  },
]
