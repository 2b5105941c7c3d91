(schema, root) => {
  // The message around a place, the field before it, and whether its value is meant.
  function placeIn(text) {
    const messages = [root];
    let field = null, isValue = false;
    for (const [word] of text.matchAll(/#[^\n]*|"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?|[\w.+-]+|[{}<>:]/g)) {
      if (word[0] === "#") continue;
      if (word === "{" || word === "<") {
        messages.push(schema[messages.at(-1)]?.[field]?.[0]);
        field = null;
        isValue = false;
      } else if (word === "}" || word === ">") {
        if (messages.length > 1) messages.pop();
        field = null;
        isValue = false;
      } else if (word === ":") {
        isValue = true;
      } else if (isValue) {
        const isOpen = /^["']/.test(word) && (word.length === 1 || word.at(-1) !== word[0]);
        if (!isOpen) isValue = false;
      } else {
        field = word;
      }
    }
    return { message: messages.at(-1), field, isValue };
  }

  function complete(context) {
    const word = context.matchBefore(/\w*/);
    if (word.from === word.to && !context.explicit) return null;
    const place = placeIn(context.state.sliceDoc(0, word.from));
    const fields = schema[place.message] ?? {};
    const [kind, values] = fields[place.field] ?? ["", []];
    if (place.isValue) return values.length ? { from: word.from, options: values.map((value) => ({ label: value, type: "enum", detail: kind })) } : null;
    const options = Object.entries(fields).map(([name, [of]]) => ({
      label: name, type: "property", detail: of.replace("caffe.", ""),
      apply: of in schema ? name + " { " : name + ": " + (of === "text" ? '"' : ""),
    }));
    return { from: word.from, options, validFor: /^\w*$/ };
  }

  return (view, CM) => view.dispatch({
    effects: CM.StateEffect.appendConfig.of(CM.EditorState.languageData.of(() => [{ autocomplete: complete }])),
  });
}
