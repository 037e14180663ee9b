import { readFileSync, symlinkSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { runSluice } from '../run-sluice.ts'
import { testFiles } from '../test-files.ts'

const { at, write } = testFiles('simulate-html')

describe('sluice simulate --html', () => {
  const line = (second: string) =>
    `192.0.2.7 - - [21/Nov/2026:10:00:${second} +0000] "GET /a HTTP/1.1" 200 5 "-" "curl/8"\n`
  const log = write('access.log', ['01', '02', '03', '04'].map(line).join(''))
  const policies = write('sluice.yaml', 'policies: [{ name: burst, limit: 3, window: 1m }]\n')
  const simulate = ['simulate', log, '--policies', policies]

  it('writes the result as a page, beside the text', async () => {
    const html = at('report.html')
    const ran = await runSluice([...simulate, '--html', html])
    expect(ran.exitCode).toBe(0)
    expect(ran.stderr).toContain(`Wrote the report to ${html}\n`)
    const [, data = ''] = /id="data">(.*?)<\/script>/s.exec(readFileSync(html, 'utf8')) ?? []
    const totals = { requests: 4, denied: 1, clients: 1, clientsDenied: 1 }
    expect(JSON.parse(data)).toMatchObject({ totals })
  })

  it.each([
    [...simulate, '--html'],
    [...simulate, '--decisions'],
    ['suggest', log, '-o'],
  ])('replaces no file without --force: %s %s %s %s %s', async (...args) => {
    const file = write('there.txt', 'mine')
    const words = [...args, file]
    const ran = await runSluice(words)
    expect([ran.exitCode, ran.stdout]).toEqual([2, ''])
    expect(ran.stderr).toContain(`${file} already exists; --force overwrites it`)
    expect(readFileSync(file, 'utf8')).toBe('mine')
    expect((await runSluice([...words, '--force'])).exitCode).toBe(0)
    expect(readFileSync(file, 'utf8')).not.toBe('mine')
  })

  const link = at('link.log')
  symlinkSync(log, link)
  it.each([
    [...simulate, '--html', policies],
    [...simulate, '--decisions', log],
    [...simulate, '--decisions', link],
    ['suggest', log, '-o', log],
  ])('replaces no file that it reads, even with --force: %s %s %s %s', async (...words) => {
    const file = words.at(-1) ?? ''
    const before = readFileSync(file, 'utf8')
    const ran = await runSluice([...words, '--force'])
    expect([ran.exitCode, ran.stdout]).toEqual([2, ''])
    expect(ran.stderr).toContain(`${file} would overwrite an input file; choose another`)
    expect(readFileSync(file, 'utf8')).toBe(before)
  })

  it('writes no file twice', async () => {
    const file = at('twice.txt')
    const ran = await runSluice([...simulate, '--html', file, '--decisions', file])
    expect([ran.exitCode, ran.stderr]).toEqual([2, expect.stringContaining('already an output')])
  })

  it('says before it reads the log that a file cannot be written', async () => {
    const ran = await runSluice([...simulate, '--html', at('none/report.html')])
    expect([ran.exitCode, ran.stdout]).toEqual([2, ''])
    expect(ran.stderr).toContain('report.html cannot be written')
  })
})
