import { createHash } from 'node:crypto'
import { gunzipSync } from 'node:zlib'
import { readPage } from '../read-page.ts'
import type { SimulationReport } from './simulation-report.ts'

/**
 * Writes a report as one self-contained HTML file, with script, styles and data. Its content
 * security policy allows only this script and these styles, and no requests.
 */
export function htmlReport(report: SimulationReport): string {
  const textOf = (name: string) => gunzipSync(readPage(name)).toString()
  const [script, styles] = [textOf('report.js'), textOf('report.css')]
  const policy = [
    "default-src 'none'",
    `script-src '${hashOf(script)}'`,
    `style-src '${hashOf(styles)}'`,
    'img-src data:',
    "base-uri 'none'",
    "form-action 'none'",
    "require-trusted-types-for 'script'",
  ].join('; ')
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<meta name="referrer" content="no-referrer">
<title>Sluice: simulation of ${escaped(report.policyFile)}</title>
<link rel="icon" href="data:,">
<style>${styles}</style>
</head>
<body>
<div id="report"></div>
<noscript>This report needs JavaScript.</noscript>
<script type="application/json" id="data">${dataText(report)}</script>
<script>${script}</script>
</body>
</html>
`
}

function hashOf(text: string): string {
  return `sha256-${createHash('sha256').update(text).digest('base64')}`
}

/** JSON that cannot end the script element, whatever clients have sent. */
function dataText(report: SimulationReport): string {
  return JSON.stringify(report).replaceAll('<', '\\u003c')
}

function escaped(text: string): string {
  const entities: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;' }
  return text.replace(/[&<>]/g, (character) => entities[character] ?? '')
}
