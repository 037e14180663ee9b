import { readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { runSluice } from '../run-sluice.ts'

const folder = temporaryFolder('simulate-html')
afterAll(() => folder[Symbol.dispose]())

describe('sluice simulate --html', () => {
  const log = join(folder.path, 'access.log')
  const policies = join(folder.path, 'sluice.yaml')
  const line = (second: string) =>
    `192.0.2.7 - - [21/Nov/2026:10:00:${second} +0000] "GET /a HTTP/1.1" 200 5 "-" "curl/8"\n`
  writeFileSync(log, ['01', '02', '03', '04'].map(line).join(''))
  writeFileSync(policies, 'policies: [{ name: burst, limit: 3, window: 1m }]\n')

  it('writes the result as a page, beside the text', async () => {
    const html = join(folder.path, 'report.html')
    const ran = await runSluice(['simulate', log, '--policies', policies, '--html', html])
    expect(ran.exitCode).toBe(0)
    expect(ran.stderr).toContain(`The report is in ${html}\n`)
    const page = readFileSync(html, 'utf8')
    const [, data = ''] = /id="data">(.*?)<\/script>/s.exec(page) ?? []
    expect(JSON.parse(data)).toMatchObject({
      totals: { requests: 4, denied: 1, clients: 1, clientsDenied: 1 },
    })
  })

  it.each(['--html', '--decisions'])('%s replaces no file without --force', async (option) => {
    const file = join(folder.path, 'there.txt')
    writeFileSync(file, 'mine')
    const words = ['simulate', log, '--policies', policies, option, file]
    const ran = await runSluice(words)
    expect([ran.exitCode, ran.stdout]).toEqual([2, ''])
    expect(ran.stderr).toContain(`${file} is there already; --force replaces it`)
    expect(readFileSync(file, 'utf8')).toBe('mine')
    expect((await runSluice([...words, '--force'])).exitCode).toBe(0)
    expect(readFileSync(file, 'utf8')).not.toBe('mine')
  })

  const link = join(folder.path, 'link.log')
  symlinkSync(log, link)
  it.each([
    ['simulate', log, '-p', policies, '--html', policies],
    ['simulate', log, '-p', policies, '--decisions', log],
    ['simulate', log, '-p', policies, '--decisions', link],
    ['suggest', log, '-o', log],
  ])('replaces no file that it reads, even with --force: %s %s %s %s', async (...words) => {
    const file = words.at(-1) ?? ''
    const before = readFileSync(file, 'utf8')
    const ran = await runSluice([...words, '--force'])
    expect([ran.exitCode, ran.stdout]).toEqual([2, ''])
    expect(ran.stderr).toContain(`${file} would replace a file that is read; name another`)
    expect(readFileSync(file, 'utf8')).toBe(before)
  })

  it('writes no file twice', async () => {
    const file = join(folder.path, 'twice.txt')
    const words = ['simulate', log, '-p', policies, '--html', file, '--decisions', file]
    const ran = await runSluice(words)
    expect([ran.exitCode, ran.stderr]).toEqual([2, expect.stringContaining('written already')])
  })

  it('says before it reads the log that a file cannot be written', async () => {
    const html = join(folder.path, 'none', 'report.html')
    const ran = await runSluice(['simulate', log, '--policies', policies, '--html', html])
    expect([ran.exitCode, ran.stdout]).toEqual([2, ''])
    expect(ran.stderr).toContain('report.html cannot be written')
  })
})
