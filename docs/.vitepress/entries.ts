import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const packages = fileURLToPath(new URL('../../packages', import.meta.url))

/** What an application can import. */
export interface Entry {
  /** `@sluice/core/backend` */
  readonly name: string
  /** `core/src/backend.ts` */
  readonly source: string
}

/** The entries of all packages, in the order of the alphabet. */
export const entries: readonly Entry[] = readdirSync(packages).flatMap((folder) => {
  const manifest = JSON.parse(readFileSync(`${packages}/${folder}/package.json`, 'utf8'))
  return Object.entries<{ '@sluice/source'?: string }>(manifest.exports).flatMap(
    ([path, target]) => {
      const source = target['@sluice/source']
      if (source === undefined) return []
      return { name: manifest.name + path.slice(1), source: folder + source.slice(1) }
    },
  )
})
