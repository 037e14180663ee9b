import { linkTo } from './app-state.ts'
import { Badge, Name } from './basics.tsx'
import type { Column } from './table.tsx'

interface CountedIdentity {
  readonly digest: string
  readonly name?: string | undefined
  readonly policy: string
  readonly mode: 'enforce' | 'shadow'
  /** True if the block was lifted, or the count reset, since the denials. */
  readonly isLifted?: boolean
}

export const identityColumns: readonly Column<CountedIdentity>[] = [
  {
    title: 'Identity',
    look: 'cut',
    cell: ({ digest, name }) => <Name href={linkTo('keys', digest)} text={name} digest={digest} />,
  },
  {
    title: 'Policy',
    by: ({ policy }) => policy,
    cell: ({ policy, mode, isLifted }) => (
      <>
        {policy} {mode === 'shadow' && <Badge tone="shadow">shadow</Badge>}
        {isLifted && <Badge tone="ok">lifted</Badge>}
      </>
    ),
  },
]
