import { createHash } from 'node:crypto'
import { htmlReport } from '@sluice/cli'
import { describe, expect, it } from 'vitest'
import { hostile, sampleReport } from './sample-report.ts'

describe('a report in HTML', () => {
  const report = sampleReport()
  const html = htmlReport(report)

  it('holds its data, and nothing that a client has sent is markup', () => {
    const [, data = ''] = /<script type="application\/json" id="data">(.*?)<\//s.exec(html) ?? []
    expect(JSON.parse(data)).toEqual(report)
    expect(html).not.toContain(hostile.slice(0, 20))
    expect(html).not.toContain('<img')
    expect(html).toContain('<title>Sluice: simulation of sluice&lt;b&gt;.yaml</title>')
  })

  it('allows its own script and styles by their hashes, and no request', () => {
    const [, policy = ''] = /Content-Security-Policy" content="([^"]*)"/.exec(html) ?? []
    expect(policy).toMatch(/^default-src 'none'; /)
    const hash = (text = '') => `'sha256-${createHash('sha256').update(text).digest('base64')}'`
    const [, styles] = /<style>(.*?)<\/style>/s.exec(html) ?? []
    const [, script] = /<script>(.*?)<\/script>\n<\/body>/s.exec(html) ?? []
    expect(policy).toContain(`style-src ${hash(styles)}`)
    expect(policy).toContain(`script-src ${hash(script)}`)
    expect(policy).not.toMatch(/unsafe|https?:|connect-src/)
    const markup = html.replace(/<script type="application\/json".*?<\/script>/s, '')
    expect(markup.match(/\s(?:src|href)=(?!"data:)/g)).toBeNull()
  })
})
