import { describe, expect, it } from 'vitest'
import { run } from '../support/run.ts'
import { root } from '../support/workspace.ts'
import { runSluice } from './run-sluice.ts'
import { testFiles } from './test-files.ts'

const commands =
  'apply block check diff doctor inspect off on raise reset shadow simulate suggest top unblock'

describe('sluice', () => {
  it('lists its commands and exit codes without arguments', async () => {
    const { exitCode, stdout, stderr } = await runSluice([])
    expect([exitCode, stderr]).toEqual([0, ''])
    for (const name of commands.split(' ')) expect(stdout).toContain(`  ${name} `)
    expect(stdout).toContain('Exit codes:')
    expect((await runSluice(['--version'])).stdout).toMatch(/^\d+\.\d+\.\d+\n$/)
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

const { write } = testFiles('check')
const right = write('right.yaml', 'policies:\n  - { name: burst, limit: 5, window: 1s }\n')
const mistakes = 'policies:\n  - { name: burst, limit: -5, window: 1s }\nroutes:\n  /health: 5\n'
const wrong = write('wrong.yaml', mistakes)

describe('sluice check', () => {
  it('lists each mistake by file, line and column, and exits with 1', async () => {
    const { exitCode, stdout } = await runSluice(['check', right, wrong])
    expect(exitCode).toBe(1)
    expect(stdout).toContain(`${right}: no errors\n`)
    expect(stdout).toContain(`${wrong}:2:27: policies[0].limit must be`)
    expect(stdout).toContain(`${wrong}:4:`)
  })

  it('uses colours only on a terminal, and none with NO_COLOR', async () => {
    const colour = '\u001b['
    const { stdout } = await runSluice(['check', right], { isTTY: true })
    expect(stdout).toContain(colour)
    const plain = await runSluice(['check', right], { isTTY: true, env: { NO_COLOR: '1' } })
    expect(plain.stdout).not.toContain(colour)
    const forced = await runSluice(['check', right], { env: { FORCE_COLOR: '1' } })
    expect(forced.stdout).toContain(colour)
  })
})
