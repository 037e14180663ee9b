import { describe, expect, it } from 'vitest'
import { runSluice } from './run-sluice.ts'
import { testFiles } from './test-files.ts'

const { at, write } = testFiles('check')
const right = write('right.yaml', 'policies:\n  - { name: burst, limit: 5, window: 1s }\n')
const mistakes = 'policies:\n  - { name: burst, limit: -5, window: 1s }\nroutes:\n  /health: 5\n'
const wrong = write('wrong.yaml', mistakes)

describe('sluice check', () => {
  it('says that a file is right', async () => {
    const { exitCode, stdout, stderr } = await runSluice(['check', right])
    expect([exitCode, stderr]).toEqual([0, ''])
    expect(stdout).toBe(`${right}: no errors\n`)
  })

  it('lists each mistake by file, line and column, and exits with 1', async () => {
    const { exitCode, stdout } = await runSluice(['check', right, wrong])
    expect(exitCode).toBe(1)
    expect(stdout).toContain(`${wrong}:2:27: policies[0].limit must be`)
    expect(stdout).toContain(`${wrong}:4:`)
  })

  it('has colours on a terminal alone, and none with NO_COLOR', async () => {
    const colour = '\u001b['
    const { stdout } = await runSluice(['check', right], { isTTY: true })
    expect(stdout).toContain(colour)
    const plain = await runSluice(['check', right], { isTTY: true, env: { NO_COLOR: '1' } })
    expect(plain.stdout).not.toContain(colour)
    const forced = await runSluice(['check', right], { env: { FORCE_COLOR: '1' } })
    expect(forced.stdout).toContain(colour)
  })

  it('says that a file is not there', async () => {
    const { exitCode, stderr } = await runSluice(['check', at('none.yaml')])
    expect(exitCode).toBe(2)
    expect(stderr).toMatch(/^error: .*none\.yaml cannot be read: ENOENT/)
  })
})
