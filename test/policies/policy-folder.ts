import { mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Writes a policy file into a folder of its own. @returns its path */
export async function policyFolder(text: string, name = 'policies.yaml'): Promise<string> {
  const file = join(await mkdtemp(join(tmpdir(), 'sluice-policies-')), name)
  await writeFile(file, text)
  return file
}
