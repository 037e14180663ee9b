import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { run } from '../support/run.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { packages, root } from '../support/workspace.ts'
import { packAll } from './tarballs.ts'

// Writes `sbom.cdx.json`: everything that a project installs with all of our packages, as CycloneDX.

const version = packages()[0]?.manifest.version
using project = temporaryFolder('sbom')
const tarballs = await packAll()
const dependencies = Object.fromEntries(tarballs.map(({ name, path }) => [name, `file:${path}`]))
await writeFile(
  join(project.path, 'package.json'),
  JSON.stringify({ name: 'sluice', version, private: true, dependencies }),
)
const cwd = project.path
await run('npm', ['install', '--package-lock-only', '--omit', 'peer'], { cwd, timeoutMs: 300_000 })
const args = ['--package-lock-only', '--omit', 'peer', '--sbom-format', 'cyclonedx']
const text = await run('npm', ['sbom', '--sbom-type', 'library', ...args], { cwd })
const bill = JSON.parse(text)
bill.metadata.component.name = 'sluice'
// Ours came from tarballs of this machine.
for (const component of bill.components) {
  if (dependencies[component.name]) component.externalReferences = []
}
await writeFile(join(root, 'sbom.cdx.json'), `${JSON.stringify(bill, null, 2)}\n`)
console.log(`sbom.cdx.json: ${bill.components.length} packages`)
