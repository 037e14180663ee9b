import { describe, expect, it } from 'vitest'
import { run } from '../support/run.ts'
import { filesUnder, root } from '../support/workspace.ts'
import { runSluice } from './run-sluice.ts'

/** Files of several commands, or of none. */
const others = ['command', 'keys', 'kill-switch', 'run-cli']

/** Every command, most by their files. */
const commands = filesUnder('packages/cli/src/commands', '.ts')
  .map((file) => file.slice('packages/cli/src/commands/'.length, -'.ts'.length))
  .filter((name) => !name.includes('/') && !others.includes(name))
  .concat('inspect', 'reset', 'block', 'off', 'shadow', 'on')

describe('sluice', () => {
  it('lists its commands and exit codes where nothing is asked', async () => {
    const { exitCode, stdout, stderr } = await runSluice([])
    expect([exitCode, stderr]).toEqual([0, ''])
    for (const name of commands) expect(stdout).toContain(`  ${name} `)
    expect(stdout).toContain('Exit codes:')
    expect((await runSluice(['--version'])).stdout).toMatch(/^\d+\.\d+\.\d+\n$/)
  })

  it.each(commands)('%s --help shows examples', async (name) => {
    const { exitCode, stdout, stderr } = await runSluice([name, '--help'])
    expect([exitCode, stderr]).toEqual([0, ''])
    expect(stdout).toContain(`Examples:\n  sluice ${name}`)
  })

  it('names the command that was probably meant', async () => {
    const { exitCode, stdout, stderr } = await runSluice(['chek'])
    expect([exitCode, stdout]).toEqual([2, ''])
    expect(stderr).toContain('Did you mean check?')
    expect(stderr).toContain('--help')
  })

  it('loads no client of Redis before doctor asks for it', async () => {
    const script = `import { createRequire } from 'node:module'
      await import('./packages/cli/src/commands/run-cli.ts')
      const loaded = Object.keys(createRequire(import.meta.url).cache)
      console.log(loaded.some((file) => file.includes('commander')), loaded.some((file) => file.includes('ioredis')))`
    const flags = ['--conditions=@sluice/source', '--import', 'tsx', '--input-type=module', '-e']
    const printed = await run(process.execPath, [...flags, script], { cwd: root })
    expect(printed.trim()).toBe('true false')
  })
})
