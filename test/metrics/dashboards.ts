import { filesUnder, readText } from '../support/workspace.ts'

interface Panel {
  readonly title: string
  readonly description: string
  readonly gridPos: Readonly<Record<'x' | 'y' | 'w' | 'h', number>>
  readonly targets: readonly { readonly expr: string; readonly legendFormat: string }[]
}

interface Variable {
  readonly name: string
  readonly type: string
  readonly query: string
  readonly allValue?: string
}

export interface Dashboard {
  readonly uid: string
  readonly links: readonly object[]
  readonly annotations: { readonly list: readonly Readonly<Record<'name' | 'expr', string>>[] }
  readonly templating: { readonly list: readonly Variable[] }
  readonly panels: readonly Panel[]
}

/** The dashboards that the package ships. */
const files = filesUnder('packages/metrics/dashboards', '.json')
export const dashboards: readonly Dashboard[] = files.map((file) => JSON.parse(readText(file)))

/** Marks in every panel, which all dashboards share: what happened to the policies. */
export const annotations = dashboards[0]?.annotations.list ?? []
